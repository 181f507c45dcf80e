"""Trained vectors: checked, scored against people's judgement, exported, and read from elsewhere."""

from pathlib import Path

import numpy as np
from gensim.test.utils import datapath

from helpers.text.corpus import planted_twin


def neighbours(keyed, word, n=10):
    """The `n` words nearest to `word`, by falling cosine: list of (str, float).

    ValueError for a word that is not in the vocabulary and for `n` below 1.
    """
    if word not in keyed:
        raise ValueError(f"{word!r} is not among the {len(keyed):,} words of these vectors")
    if n < 1:
        raise ValueError(f"n={n}, but at least 1 neighbour must be asked for")
    return keyed.most_similar(word, topn=n)


# ---- Scores


def scores(keyed):
    """How well a KeyedVectors agrees with people: a dict of floats, each with its coverage.

    wordsim353, simlex999: Spearman's rank correlation between cosines and the judgement of people, -1 to 1.
    WordSim-353 rates relatedness (Finkelstein et al., 2002), SimLex-999 similarity proper (Hill et al., 2015).
    analogy: the share of "a is to b as c is to ?" answered exactly among the first 15,000 words (Mikolov et al., 2013).
    <name>_coverage: the share of the pairs or questions whose words are all in the vocabulary; the others are left out.
    A score is None where fewer than two pairs, or no question, are covered; the coverage of such pairs is 0.
    """
    found = {}
    for name, file in ("wordsim353", "wordsim353.tsv"), ("simlex999", "simlex999.txt"):  # test data of gensim
        try:
            _, spearman, unknown = keyed.evaluate_word_pairs(datapath(file))  # unknown: pairs left out, in percent
            found |= {name: float(spearman.statistic), f"{name}_coverage": 1 - unknown / 100}
        except ValueError:  # of 0 pairs and of 1 there is no correlation
            found |= {name: None, f"{name}_coverage": 0.0}
    right, asked, total = analogies(keyed)
    return {**found, "analogy": right / asked if asked else None, "analogy_coverage": asked / total}


def twins_found(vectors, words):
    """The share of planted content words whose nearest content word, by cosine, is their twin."""
    content = [i for i, word in enumerate(words) if word.startswith("t")]
    unit = vectors[content] / np.linalg.norm(vectors[content], axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    names = [words[i] for i in content]
    return float(np.mean([planted_twin(name) == names[i] for name, i in zip(names, cosines.argmax(1), strict=True)]))


def analogies(keyed, restrict=15_000):
    """How many analogy questions are (answered right, covered by the vocabulary, in the file).

    The answer is the word with the largest cosine to b - a + c, of vectors of length 1, among the first `restrict`
    words, a, b and c left out ("3CosAdd"). The same as gensim's evaluate_word_analogies, which asks one question at
    a time, in matrix products.
    """
    index = {word.upper(): i for i, word in reversed(list(enumerate(keyed.index_to_key[:restrict])))}
    unit = keyed.vectors[:restrict] / np.linalg.norm(keyed.vectors[:restrict], axis=1, keepdims=True)
    lines = Path(datapath("questions-words.txt")).read_text("utf-8").upper().splitlines()
    questions = [line.split() for line in lines if not line.startswith(":")]  # that is the title of a section
    covered = np.array([[index[w] for w in q] for q in questions if index.keys() >= set(q)], int).reshape(-1, 4)
    right = 0
    for some in np.array_split(covered, len(covered) // 256 + 1):
        a, b, c, expected = some.T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
        np.put_along_axis(cosines, some[:, :3], -np.inf, axis=1)
        right += int((cosines.argmax(axis=1) == expected).sum())
    return right, len(covered), len(questions)
