"""Pairs of a text. Lesson 03 defines the same functions, and asserts their laws; here are the edges."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.text.skipgram import generate_batch, pair_batches, shard, skipgram_pairs

texts = st.lists(st.integers(0, 5), max_size=40)
windows = st.integers(1, 6)
blocks = st.integers(1, 15)
seeds = st.integers(0, 2**32 - 1)


def rng_of(seed=0):
    return np.random.default_rng(seed)


def all_pairs(ids, window):
    """Every legal pair of a text, in plain Python."""
    n = len(ids)
    places = [(i, j) for i in range(n) for j in range(max(0, i - window), min(n, i + window + 1)) if i != j]
    return Counter((ids[i], ids[j]) for i, j in places)


def counted(centers, contexts):
    return Counter(zip(centers.tolist(), contexts.tolist(), strict=True))


def epoch(*args, **options):
    batches = list(pair_batches(*args, **options))
    return np.concatenate([c for c, _ in batches]), np.concatenate([c for _, c in batches])


# ---- generate_batch, the reference


@given(st.data(), st.integers(1, 4), seeds)
def test_the_reference_draws_legal_pairs(data, skip_window, seed):
    n = data.draw(st.integers(2 * skip_window + 1, 30))
    num_skips = data.draw(st.integers(1, 2 * skip_window))
    centers, contexts = generate_batch(np.arange(n), 5 * num_skips, num_skips, skip_window, rng_of(seed))
    assert centers.dtype == contexts.dtype == np.int32
    assert centers.shape == contexts.shape == (5 * num_skips,)
    offsets = (contexts - centers) % n
    assert ((offsets != 0) & ((offsets <= skip_window) | (offsets >= n - skip_window))).all()
    by_center, offsets = centers.reshape(5, num_skips), offsets.reshape(5, num_skips)
    assert (by_center == by_center[:, :1]).all()
    assert (np.diff(by_center[:, 0]) % n == 1).all()  # slides by one word, from the last to the first too
    assert all(len(set(row)) == num_skips for row in offsets.tolist())


# ---- skipgram_pairs and shard


@given(texts, windows, seeds)
def test_without_shrinking_all_pairs_are_there_once(ids, window, seed):
    centers, contexts = skipgram_pairs(np.array(ids, np.int32), window, rng_of(seed), shrink=False)
    assert centers.dtype == contexts.dtype == np.int32
    assert counted(centers, contexts) == all_pairs(ids, window)


@given(st.integers(0, 200), st.integers(1, 20))
def test_shards_are_disjoint_complete_and_even(n, size):
    shards = [shard(np.arange(n), rank, size) for rank in range(size)]
    assert np.concatenate(shards).tolist() == list(range(n))
    assert np.ptp([len(part) for part in shards]) <= 1


# ---- pair_batches


@given(texts.filter(lambda ids: len(ids) > 1), windows, blocks, seeds, st.data())
def test_an_epoch_is_all_pairs_also_across_blocks_but_for_the_last_partial_batch(ids, window, block, seed, data):
    legal = all_pairs(ids, window)
    size = data.draw(st.integers(1, legal.total()))
    batches = list(pair_batches(np.array(ids), size, window, rng_of(seed), block=block, shrink=False))
    found = sum((counted(*batch) for batch in batches), Counter())
    assert found <= legal and legal.total() - found.total() == legal.total() % size
    for array in [array for batch in batches for array in batch]:
        assert array.shape == (size,) and array.dtype == np.int32


@given(st.integers(2, 40), windows, blocks, seeds)
def test_each_center_takes_all_words_within_its_one_reach_also_across_blocks(n, window, block, seed):
    centers, contexts = epoch(np.arange(n), 1, window, rng_of(seed), block=block)
    for center in range(n):
        seen = contexts[centers == center]
        reach = max(abs(seen - center))
        near = range(max(0, center - reach), min(n, center + reach + 1))
        assert reach <= window and sorted(seen) == [i for i in near if i != center]


def test_batches_are_shuffled_across_and_inside_blocks():
    centers, _ = epoch(np.arange(10_000), 100, 5, rng_of(5), block=1_000)
    jump_inside_a_block = np.abs(np.diff(centers)).mean()
    assert jump_inside_a_block == pytest.approx(1_000 / 3, rel=0.1)  # the mean of two uniform draws
    blocks = centers[:: len(centers) // 10] // 1_000
    assert blocks.tolist() != sorted(blocks.tolist())
    again, _ = epoch(np.arange(10_000), 100, 5, rng_of(5), block=1_000)
    assert np.array_equal(centers, again)


def test_subsampled_batches_take_windows_over_the_words_that_are_left():
    ids = np.tile([0, 1], 500)
    centers, contexts = epoch(ids, 1, 1, rng_of(), keep=np.array([0.0, 1.0]), block=64)
    assert counted(centers, contexts) == Counter({(1, 1): 2 * 499})


# ---- what is refused, at once


@pytest.mark.parametrize(
    ("function", "n", "arguments", "message"),
    [
        (generate_batch, 99, (12, 3, 1), "num_skips=3, .*skip_window=1 has only 2"),
        (generate_batch, 99, (7, 2, 1), "batch_size=7 is not a multiple of num_skips=2"),
        (generate_batch, 4, (8, 2, 2), "skip_window=2 spans 5 words, but the text has only 4"),
        (generate_batch, 0, (8, 2, 2), "text has only 0"),
        (generate_batch, 99, (0, 2, 1), "batch_size=0"),
        (generate_batch, 99, (8, 0, 1), "num_skips=0"),
        (generate_batch, 99, (8, 2, -1), "skip_window=-1"),
        (skipgram_pairs, 3, (0,), "window=0"),
        (skipgram_pairs, 3, (-2,), "window=-2"),
        (pair_batches, 9, (0, 2), "batch_size=0"),
        (pair_batches, 9, (4, 0), "window=0"),
        (pair_batches, 5, (15, 2), "batch_size=15, .*5 words with window=2 give at most 14 pairs"),
        (pair_batches, 2, (3, 2), "at most 2 pairs"),
        (pair_batches, 1, (1, 2), "at most 0 pairs"),
        (pair_batches, 0, (1, 2), "at most 0 pairs"),
    ],
)
def test_bad_arguments_are_refused_at_once(function, n, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(np.arange(n), *arguments, rng_of())


def test_a_block_without_words_and_a_rank_beyond_the_size_are_refused():
    with pytest.raises(ValueError, match="block=0"):
        pair_batches(np.arange(9), 4, 2, rng_of(), block=0)
    for rank, size in ((2, 2), (-1, 2), (0, 0), (0, -1)):
        with pytest.raises(ValueError, match=f"rank={rank} of size={size}"):
            shard(np.arange(9), rank, size)
