"""Commands from templates, and how well their slots are found: what lesson 30 trains its assistant on."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import table

SEEDS = (("o", "#222222"), ("s", "#777777"), ("D", "#aaaaaa"))  # marker and gray of each

# the values of each slot
SLOTS = {
    "OBJECT": "array, list, table, data frame, matrix, sparse matrix, string, "
    "index, dictionary, queue, data set, image, graph, series, buffer, tensor",
    "KEY": "name, date, size, weight, length, value, color, width, label, "
    "title, mean value, column name, file name, class label, first element",
    "TYPE": "integer, float, unicode string, numpy array, byte string, tuple",
    "FILE": "log file, configuration file, text file, module, archive, package",
}
# the templates of each intent, behind || those of the test, which make no longer commands than the training's
INTENTS = {
    "sort": "sort the OBJECT by KEY, order the OBJECT by KEY, put the OBJECT "
    "in order of KEY || sort the rows of OBJECT by KEY, "
    "return OBJECT in ascending order of KEY",
    "plot": "plot the KEY of the OBJECT, draw KEY as a function of KEY, show "
    "a figure of KEY || could you plot KEY in the OBJECT, display a graph of KEY",
    "convert": "convert the OBJECT to TYPE, turn KEY into a TYPE, make a TYPE "
    "from the OBJECT || could you convert the KEY to TYPE, "
    "transform this OBJECT into a TYPE",
    "remove": "remove KEY from the OBJECT, delete the FILE, please delete the "
    "last KEY of OBJECT || delete all KEY of the OBJECT, drop KEY from OBJECT",
    "save": "save the OBJECT to the FILE, write KEY in a FILE, please save the "
    "FILE || could you write KEY to the FILE, store OBJECT in FILE",
    "find": "find KEY in the OBJECT, search the FILE for KEY, where is KEY in "
    "the OBJECT || find out where KEY is in FILE, look up KEY in OBJECT",
}


def apart(weights, others):
    """Return the largest difference of two lists of arrays."""
    return max(np.abs(a - b).max() for a, b in zip(weights, others))


def table_of_templates(intents):
    """Make a table of each intent's first template, of the training and of the test."""
    rows = []
    for intent, templates in intents.items():
        training, test = templates.split(" || ")
        rows.append([intent, training.split(", ")[0], test.split(", ")[0]])
    return table(["intent", "template of the training", "of the test"], rows)


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


def encoded(n, seed, intents, slots, tag_names, vocab, test):
    """Draw commands, as numbers.

    Parameters
    ----------
    n : int
        Commands.
    seed : int
    intents, slots : dict of str to str
        As those of `draw_command`.
    tag_names : list of str
    vocab : Vocab
    test : int
        0 for templates of the training, 1 for those of the test.

    Returns
    -------
    tokens : int32 array [n, 1 + words of the longest command]
        0 for padding, 1 for [CLS], 3 + the number of the word in the vocabulary.
    of_intents : int32 array [n]
    tags : int32 array, as wide as tokens
        0 at padding and [CLS].
    """
    rng = np.random.default_rng(seed)
    drawn = [draw_command(rng, intents, slots, test) for _ in range(n)]
    longest = max(len(words) for _, words, _ in drawn)
    tokens, tags = np.zeros([2, n, 1 + longest], np.int32)
    of_intents = np.zeros(n, np.int32)
    for i, (intent, words, of_words) in enumerate(drawn):
        end = 1 + len(words)
        of_intents[i] = list(intents).index(intent)
        tokens[i, 0] = 1
        tokens[i, 1:end] = 3 + vocab.encode(words)
        tags[i, 1:end] = [tag_names.index(tag) for tag in of_words]
    return tokens, of_intents, tags


def marked(tokens, places, vocab):
    """Write a window of text.

    Parameters
    ----------
    tokens : int array [words]
        The first is [CLS], which is left out.
    places : int array
        Where the words stand that are to be guessed: they get brackets.
    vocab : Vocab

    Returns
    -------
    str
        Lines of at most 76 characters.
    """
    words = [vocab.words[token - 3] for token in tokens]
    for place in places:
        words[place] = f"[{words[place]}]"
    return textwrap.fill(" ".join(words[1:]), 76)


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


def score(found_intents, found_tags, right, tag_names):
    """Compare an assistant's answers with the right ones.

    Parameters
    ----------
    found_intents : int array [n]
    found_tags : int array [n, words]
    right : (int array [n, words], int array [n], int array [n, words])
        Tokens, intents and tags. Tokens 0 and 1, padding and [CLS], do not count.
    tag_names : list of str

    Returns
    -------
    (float, float)
        The share of the right intents, and the F1 of the slots.
    """
    tokens, intents, tags = right

    def named(numbers):
        return [[tag_names[tag] for tag in row[ids > 1]] for row, ids in zip(numbers, tokens)]

    return np.mean(found_intents == intents), slot_f1(named(tags), named(found_tags))


def scores_of_ranks(answers, right, tag_names):
    """Score what assistants have found; all ranks must have found the same.

    Parameters
    ----------
    answers : list of dict of str to list of (int array [n], int array [n, words])
        Of each rank, by name, of each seed the intents and the tags that were found.
    right, tag_names
        As those of `score`.

    Returns
    -------
    dict of str to float array [seeds, 2]
        By name, of each seed the intent accuracy and the F1.

    Raises
    ------
    AssertionError
        If the ranks have found different things: their replicas are not equal.
    """
    scores = {}
    for name, of_seeds in answers[0].items():
        for other in answers[1:]:
            for found, theirs in zip(of_seeds, other[name]):
                assert all(map(np.array_equal, found, theirs)), f"{name}: the ranks' answers differ"
        scores[name] = np.array([score(*found, right, tag_names) for found in of_seeds])
    return scores


def table_of_tags(one, right, answer, vocab, tag_names):
    """Make a table of the words of a command, with the right tag and the one that was found.

    Parameters
    ----------
    one : int
        The number of the command.
    right
        As that of `score`.
    answer : (int array [n], int array [n, words])
        The intents and tags that were found.
    vocab : Vocab
    tag_names : list of str

    Returns
    -------
    IPython.display.Markdown
    """
    tokens, _, tags = right
    _, found = answer
    rows = [
        [vocab.words[token - 3], tag_names[tag], tag_names[other]]
        for token, tag, other in zip(tokens[one], tags[one], found[one])
        if token > 1
    ]
    return table(["word", "right tag", "found"], rows)


def print_difference(scores, name, other):
    """Print seed by seed how much better one is than another; scores as `scores_of_ranks` makes them."""
    print(f"{name} minus {other}, by seed:")
    for kind, found in zip(("intents", "F1"), (scores[name] - scores[other]).T):
        print(f"    {kind} {found.round(2)}, mean {found.mean():+.3f}")


def draw_counts(off, scores):
    """Draw how far each way of counting is off one process, and beside it the F1 of each seed.

    Parameters
    ----------
    off : dict of str to float
        Of each way of counting the largest difference of a weight from one process.
    scores : dict of str to float array [seeds, 2]
        Of each way of counting, as `scores_of_ranks` makes them.
    """
    figure, (left, right) = plt.subplots(1, 2)
    left.plot(list(off), list(off.values()), "o", color="black")
    left.set(yscale="log", ylim=(1e-9, 1), xlim=(-0.5, len(off) - 0.5))
    left.set_ylabel("off one process, after 5 steps")
    draw_columns(right, scores, list(off), 1)
    right.set(xlim=(-0.5, len(off) - 0.5), ylabel="slot F1, after 75 steps")
    right.legend(loc="best")
    distances = " and ".join(f"{distance:.0e}" for distance in off.values())
    f1 = " and ".join(f"{scores[count][:, 1].mean():.2f}" for count in off)
    title = f"One process tells the counts apart: {distances}; F1 is {f1}"
    figure.suptitle(title, x=0.02, ha="left")


def draw_columns(ax, scores, names, column):
    """Draw a dot for each seed over each name: 0 as column for the intent accuracy, 1 for the F1."""
    for seed, (marker, gray) in enumerate(SEEDS):
        of_seed = [scores[name][seed, column] for name in names]
        ax.plot(names, of_seed, marker, color=gray, label=f"seed {seed}")


def draw_seeds(scores):
    """Draw the F1 of each start and seed, and beside it the intent accuracy; the start with the best F1 comes first.

    scores: dict of str to float array [seeds, 2], as `scores_of_ranks` makes it.
    """
    means = {name: found[:, 1].mean() for name, found in scores.items()}
    names = sorted(means, key=means.get, reverse=True)
    figure, axes = plt.subplots(1, 2, sharey=True)
    for ax, column, label in zip(axes, (1, 0), ("slot F1", "intent accuracy")):
        draw_columns(ax, scores, names, column)
        ax.set_ylabel(label)
        plt.setp(ax.get_xticklabels(), rotation=30, ha="right")
    axes[0].legend(loc="lower left")
    title = "F1: " + ", ".join(f"{name} {means[name]:.2f}" for name in names)
    figure.suptitle(textwrap.fill(title, 70), x=0.02, ha="left")
