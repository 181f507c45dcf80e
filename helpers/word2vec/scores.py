"""How good vectors are: scores against people's judgement, twins found."""

import numpy as np
from gensim.test.utils import datapath

from helpers.text.corpus import planted_twin

PAIRS_OF_GENSIM = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}  # its test data
ANALOGIES_OF_GENSIM = "questions-words.txt"
ANALOGY_WORDS = 15_000  # the most frequent ones, of which questions and answers are


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

        analogy : the share of "a is to b as c is to ?" answered exactly among the first
        ANALOGY_WORDS words (Mikolov et al., 2013).

        Pairs and questions with a word that is not in the vocabulary are left out. A score is None
        where fewer than two pairs, or no question, remain.
    """
    found = {}
    for name, file in PAIRS_OF_GENSIM.items():
        try:
            _, spearman, _ = keyed.evaluate_word_pairs(datapath(file))
            found[name] = float(spearman.statistic)
        except ValueError:  # of 0 pairs and of 1 there is no correlation
            found[name] = None
    _, sections = keyed.evaluate_word_analogies(datapath(ANALOGIES_OF_GENSIM), restrict_vocab=ANALOGY_WORDS)
    right, wrong = (len(sections[-1][answers]) for answers in ("correct", "incorrect"))  # of all sections
    found["analogy"] = right / (right + wrong) if right + wrong else None
    return found


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
