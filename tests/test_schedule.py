"""The rule by which interval, hot rows and rate follow from the number of ranks and the words of a text."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from helpers.exchange.merging import make_exchange
from helpers.text.vocab import Vocab
from helpers.word2vec.blocks import BLOCKS
from helpers.word2vec.schedule import LONGEST, LOST, LR, WORDS, bounded_changes, schedule

RANKS = [1, 2, 3, 4, 8, 16, 64]


def zipf(words, size):
    """A vocabulary of `size` words, the k-th of which comes 1 / k as often as the first, of a text of `words`."""
    share = 1 / np.arange(1, size + 1)
    counts = np.maximum(1, words * share / share.sum()).astype(int)
    return Vocab(["UNK", *map(str, range(size))], [0, *counts])


VOCAB = zipf(5_000_000, 30_000)


def test_one_rank_trains_as_ever():
    assert schedule(1, VOCAB) == (BLOCKS, LR)
    own = replace(BLOCKS, interval=7, hot=3)
    assert schedule(1, VOCAB, own, 0.1) == (own, 0.1)


def test_two_ranks_by_hand():
    blocks, lr = schedule(2, VOCAB)
    share = VOCAB.counts[1:] / VOCAB.counts.sum()
    assert blocks == replace(BLOCKS, interval=WORDS, hot=int((share * WORDS >= 12).sum()))
    assert lr == pytest.approx(LR * 6 / 5)


def test_of_the_common_progress_as_much_is_lost_with_any_number_of_ranks():
    """In words instead of hits: s is then WORDS."""
    for ranks in RANKS[1:]:
        h = schedule(ranks, VOCAB)[0].interval
        assert (ranks - 1) * h / (WORDS + ranks * h) == pytest.approx(LOST, rel=1e-3)


def test_more_ranks_exchange_more_often_and_learn_faster_within_bounds():
    found = [schedule(ranks, VOCAB) for ranks in RANKS]
    intervals = [blocks.interval for blocks, _ in found]
    rates = [lr for _, lr in found]
    assert intervals == sorted(set(intervals), reverse=True) and rates == sorted(set(rates))
    assert intervals[0] == BLOCKS.interval and intervals[-1] > 0
    assert min(rates) >= LR and max(rates) < LR / (1 - LOST)
    assert len({blocks.hot for blocks, _ in found[1:]}) == 1


def test_hot_rows_follow_from_how_often_words_come_not_from_the_length_of_the_text():
    hot = [schedule(4, zipf(words, 30_000))[0].hot for words in (5_000_000, 50_000_000)]
    assert hot[0] == pytest.approx(hot[1], rel=0.01)
    even = Vocab(["UNK", *map(str, range(5_000))], [0] + [1_000] * 5_000)  # few words, each of which comes often
    assert schedule(4, even)[0].hot == 5_000 > hot[0]
    rare = Vocab(["UNK", *map(str, range(50_000))], [0] + [10] * 50_000)
    assert schedule(4, rare)[0].hot == BLOCKS.hot


def test_what_is_given_bounds_the_interval_and_the_hot_rows():
    blocks, lr = schedule(4, VOCAB, replace(BLOCKS, interval=500, hot=20_000, tokens=8), 0.03)
    assert (blocks.interval, blocks.hot, blocks.tokens) == (500, 20_000, 8)
    assert lr == pytest.approx(0.03 / (1 - LOST * 3 / 4))


def test_no_rank_is_an_error():
    with pytest.raises(ValueError, match="ranks=0, but at least 1 is needed"):
        schedule(0, VOCAB)


def test_no_merged_change_is_longer_than_the_longest():
    """Two ranks that have changed the same: the sum is twice as much, the merged change as much, but not too long."""
    common = [tf.Variable(tf.zeros([3, 4]))]
    tables = [tf.Variable([[0.3, 0, 0, 0.4], [3, 0, 0, 4], [0, 0, 0, 0]])]
    with make_exchange(tables, common, lambda own: 2 * own, bounded_changes)([0, 1, 2]):
        tables[0].scatter_add(tf.IndexedSlices(tf.ones([1, 4]), [2]))  # trained meanwhile
    np.testing.assert_allclose(common[0], [[0.3, 0, 0, 0.4], [0.6, 0, 0, 0.8], [0, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(tables[0], [[0.3, 0, 0, 0.4], [0.6, 0, 0, 0.8], [1, 1, 1, 1]], atol=1e-6)
    assert np.linalg.norm(common[0], axis=1).max() == pytest.approx(LONGEST)
