"""How good vectors are: neighbours of a word, scores against people's judgement, twins found."""

from pathlib import Path

import numpy as np
from gensim.test.utils import datapath

from helpers.text.corpus import planted_twin

PAIRS_OF_GENSIM = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}  # its test data


def neighbours(keyed, word, n=10):
    """Find the words nearest to a word.

    Parameters
    ----------
    keyed : gensim.models.KeyedVectors
    word : str
    n : int

    Returns
    -------
    list of (str, float)
        The `n` nearest words with their cosines, which fall.

    Raises
    ------
    ValueError
        For a word that is not in the vocabulary and for `n` below 1.
    """
    if word not in keyed:
        raise ValueError(f"{word!r} is not among the {len(keyed):,} words of these vectors")
    if n < 1:
        raise ValueError(f"n={n}, but at least 1 neighbour must be asked for")
    return keyed.most_similar(word, topn=n)


def scores(keyed):
    """Compute how well vectors agree with people.

    Parameters
    ----------
    keyed : gensim.models.KeyedVectors

    Returns
    -------
    dict of str to float
        wordsim353, simlex999 : Spearman's rank correlation between cosines and the judgement of
        people, -1 to 1. WordSim-353 rates relatedness (Finkelstein et al., 2002), SimLex-999
        similarity proper (Hill et al., 2015).

        analogy : the share of "a is to b as c is to ?" answered exactly among the first 15,000
        words (Mikolov et al., 2013).

        <name>_coverage : the share of the pairs or questions whose words are all in the
        vocabulary; the others are left out.

        A score is None where fewer than two pairs, or no question, are covered; the coverage of
        such pairs is 0.
    """
    found = {}
    for name, file in PAIRS_OF_GENSIM.items():
        try:
            _, spearman, percent_unknown = keyed.evaluate_word_pairs(datapath(file))
            found[name] = float(spearman.statistic)
            found[f"{name}_coverage"] = 1 - percent_unknown / 100
        except ValueError:  # of 0 pairs and of 1 there is no correlation
            found[name] = None
            found[f"{name}_coverage"] = 0.0
    right, asked, total = analogies(keyed)
    found["analogy"] = right / asked if asked else None
    return {**found, "analogy_coverage": asked / total}


def twins_found(vectors, words):
    """Compute the share of planted content words whose nearest content word is their twin.

    Parameters
    ----------
    vectors : float array [V, dim]
    words : list of str, length V

    Returns
    -------
    float
    """
    content = [i for i, word in enumerate(words) if word.startswith("t")]
    unit = vectors[content] / np.linalg.norm(vectors[content], axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    names = [words[i] for i in content]
    nearest = [names[i] for i in cosines.argmax(axis=1)]
    return float(np.mean([planted_twin(name) == near for name, near in zip(names, nearest)]))


def analogies(keyed, restrict=15_000):
    """Answer gensim's analogy questions.

    The answer is the word with the largest cosine to b - a + c, of vectors of length 1, among the
    first `restrict` words, a, b and c left out ("3CosAdd"). The same as gensim's
    evaluate_word_analogies, which asks one question at a time, in matrix products.

    Parameters
    ----------
    keyed : gensim.models.KeyedVectors
    restrict : int

    Returns
    -------
    right, covered, asked : int
        Questions answered right, whose words are known, and in the file.
    """
    words = [word.upper() for word in keyed.index_to_key[:restrict]]
    index = {word: i for i, word in reversed([*enumerate(words)])}  # of two the more frequent one
    vectors = keyed.vectors[:restrict]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    lines = Path(datapath("questions-words.txt")).read_text("utf-8").upper().splitlines()
    questions = [line.split() for line in lines if not line.startswith(":")]  # a section's title
    known = [question for question in questions if index.keys() >= set(question)]
    covered = np.array([[index[word] for word in question] for question in known], int)
    covered = covered.reshape(-1, 4)
    right = 0
    for some in np.array_split(covered, len(covered) // 256 + 1):
        a, b, c, expected = some.T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
        np.put_along_axis(cosines, some[:, :3], -np.inf, axis=1)
        right += int((cosines.argmax(axis=1) == expected).sum())
    return right, len(covered), len(questions)
