"""Commands from templates, and how well their slots are found: what lesson 30 trains its assistant on."""


def draw_command(rng, intents, slots, test):
    """Fill a template.

    Parameters
    ----------
    rng : np.random.Generator
    intents : dict of str to str
        Of each intent its templates, with ", " between them; behind " || " those of the test.
    slots : dict of str to str
        Of each slot its values, with ", " between them.
    test : int
        0 for a template of the training, 1 for one of the test.

    Returns
    -------
    (str, list of str, list of str)
        The intent, the words, and of each word its tag: "O", "B-SLOT" or "I-SLOT".
    """
    intent = rng.choice(list(intents))
    templates = intents[intent].split(" || ")[test].split(", ")
    words, tags = [], []
    for word in rng.choice(templates).split():
        if word in slots:
            value = rng.choice(slots[word].split(", ")).split()
            words += value
            tags += [f"B-{word}"] + [f"I-{word}"] * (len(value) - 1)
        else:
            words.append(word)
            tags.append("O")
    return intent, words, tags


def spans(tags):
    """Find the values of a sentence, as CoNLL counts them.

    Parameters
    ----------
    tags : list of str

    Returns
    -------
    set of (int, int, str)
        The first word, the one behind the last, and the slot.
    """
    found, first, slot = set(), 0, None
    for i, tag in enumerate([*tags, "O"]):
        place, _, kind = tag.partition("-")
        if slot and (place != "I" or kind != slot):
            found.add((first, i, slot))
            slot = None
        if place == "B" or (place == "I" and not slot):
            first, slot = i, kind
    return found


def slot_f1(right, found):
    """Compare the spans of sentences.

    Parameters
    ----------
    right, found : list of list of str
        Of each sentence its tags.

    Returns
    -------
    float
        2 x spans in both / all spans, the harmonic mean of precision and recall.
    """
    pairs = [(spans(a), spans(b)) for a, b in zip(right, found)]
    both = sum(len(a & b) for a, b in pairs)
    return 2 * both / max(1, sum(len(a) + len(b) for a, b in pairs))
