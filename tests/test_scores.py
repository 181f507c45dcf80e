"""Scores: of gensim's lists, and of planted twins."""

import json

import numpy as np
import pytest
from gensim.test.utils import datapath

from helpers.word2vec.scores import scores, twins_found
from helpers.word2vec.vectors import to_keyed_vectors

WORDS = ["UNK", "cat", "dog", "car", "voiture"]


@pytest.fixture
def keyed():
    return to_keyed_vectors(np.random.default_rng(0).normal(size=(5, 3)), WORDS)


@pytest.fixture(scope="module")
def english():
    """Random vectors for most of the words of the analogy questions."""
    with open(datapath("questions-words.txt"), encoding="utf-8") as file:
        found = {word.lower() for line in file if line[0] != ":" for word in line.split()}
    words = sorted(found | {"tiger", "car", "computer", "love", "old", "new", "smart", "happy", "cup", "coffee"})[::-1]
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(len(words), 6))
    return to_keyed_vectors(vectors, words)


def test_scores_are_gensims(english):
    found = scores(english)
    for name, file in (("wordsim353", "wordsim353.tsv"), ("simlex999", "simlex999.txt")):
        _, spearman, missing = english.evaluate_word_pairs(datapath(file))
        assert found[name] == pytest.approx(spearman.statistic)
        assert 0 < missing < 100
    assert 0 < found["analogy"] < 1
    json.dumps(found)


def test_planted_parallelograms_are_answered():
    """Vectors made so that b - a + c is d."""
    words = ["good", "better", "bad", "worse", "far", "moon"]
    comparison, good, bad, far, moon = np.eye(5)
    vectors = [good, good + comparison, bad, bad + comparison, far, moon]
    assert scores(to_keyed_vectors(vectors, words))["analogy"] == 1
    vectors[3] = -vectors[3]  # so "worse" is no longer found, and "better" still is
    assert scores(to_keyed_vectors(vectors, words))["analogy"] == 0.5


def test_scores_without_covered_words(keyed):
    found = scores(to_keyed_vectors(keyed.vectors, [f"t0{i}" for i in range(5)]))
    assert found == {"wordsim353": None, "simlex999": None, "analogy": None}


@pytest.mark.parametrize("words", [["stock", "jaguar"], ["stock", "moon"]])
def test_one_covered_pair_or_none_has_no_correlation(words):
    found = scores(to_keyed_vectors(np.eye(2), words))
    assert (found["wordsim353"], found["simlex999"]) == (None, None)


def test_twins_by_hand():
    vectors = np.array([[1, 1], [1, 0], [0.9, 0.1], [0, 1], [-1, 0.05]])
    words = ["UNK", "t00c00a", "t00c00b", "t00c01a", "t00c01b"]
    assert twins_found(vectors, words) == 0.75  # t00c01a is nearer to t00c00b than to its twin
