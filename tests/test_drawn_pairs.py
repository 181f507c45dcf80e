"""The pairs that lesson 13 draws from blocks are those of word2vec."""

import numpy as np

from helpers.word2vec import Blocks, cut_blocks, pad_text
from lesson_parts.drawn_pairs import draw_pairs

BLOCKS = Blocks()
N = 10_000  # the word is the place; random words are those above it


def drawn():
    rng = np.random.default_rng(0)
    text = np.arange(1, N + 1, dtype=np.int32)
    noise = (N + 1 + np.arange(500 * BLOCKS.random, dtype=np.int32)).reshape(500, BLOCKS.random)
    words = cut_blocks(pad_text(text, BLOCKS), 0, 1, noise, rng, BLOCKS)
    words = words.reshape(-1, words.shape[-1])
    return draw_pairs(words, BLOCKS.window, BLOCKS.random, BLOCKS.negatives)


def test_each_distance_as_often_as_word2vec_draws_it_and_no_padding():
    pairs = drawn()
    distance = abs(pairs[:, 1] - pairs[:, 0])
    assert pairs[:, :2].min() >= 1 and pairs[:, :2].max() <= N
    counts = np.bincount(distance, minlength=7) / (2 * N)
    np.testing.assert_allclose(counts, [0, 1, 0.8, 0.6, 0.4, 0.2, 0], atol=0.02)


def test_random_words_are_drawn_from_all_blocks():
    random = drawn()[:, 2:]
    assert random.shape[1] == BLOCKS.negatives and random.min() > N
    halves = np.histogram(random, bins=2)[0] / random.size
    np.testing.assert_allclose(halves, 0.5, atol=0.06)
    assert len(np.unique(random[:, 0])) > 3_000


def test_a_call_draws_what_the_last_one_drew():
    assert (drawn() == drawn()).all()
