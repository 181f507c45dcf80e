from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.text.skipgram import generate_batch, pair_batches, pairs_within, shard, skipgram_pairs, subsample

texts = st.lists(st.integers(0, 5), max_size=40)
windows = st.integers(1, 6)
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


def assert_within_5_sigma(seen, trials, probability):
    """`seen` successes in `trials` independent draws are as many as `probability` says."""
    sigma = np.sqrt(trials * probability * (1 - probability))
    assert abs(seen - trials * probability) <= 5 * sigma


def assert_each_center_has_one_full_reach(centers, contexts, n, window):
    """In the text 0..n-1 each word's contexts are all those within one reach of 1..window, once."""
    found = {i: [] for i in range(n)}
    for center, context in zip(centers.tolist(), contexts.tolist(), strict=True):
        found[center].append(context)
    for center, seen in found.items():
        reach = max(abs(context - center) for context in seen)
        near = range(max(0, center - reach), min(n, center + reach + 1))
        assert reach <= window and sorted(seen) == [i for i in near if i != center]


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


def test_the_reference_draws_each_position_and_each_start_equally_often():
    n, skip_window, num_skips, rng = 20, 3, 2, rng_of(1)
    places, starts = Counter(), Counter()
    for _ in range(3_000):
        centers, contexts = generate_batch(range(n), 8, num_skips, skip_window, rng)
        places.update(((contexts - centers) % n).tolist())
        starts[int(centers[0])] += 1
    assert set(places) == {1, 2, 3, n - 1, n - 2, n - 3}
    for seen in places.values():
        assert_within_5_sigma(seen, trials=12_000, probability=num_skips / (2 * skip_window))
    for start in range(n):
        assert_within_5_sigma(starts[start], trials=3_000, probability=1 / n)


def test_the_reference_with_all_neighbours_of_a_sentence():
    centers, contexts = generate_batch([10, 11, 12], 6, 2, 1, rng_of())
    assert counted(centers, contexts) == Counter([(10, 11), (10, 12), (11, 10), (11, 12), (12, 11), (12, 10)])


def test_the_reference_is_reproducible():
    one, same, other = (generate_batch(np.arange(99), 64, 2, 2, rng_of(seed)) for seed in (7, 7, 8))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("n", "arguments", "message"),
    [
        (99, (12, 3, 1), "num_skips=3, .*skip_window=1 has only 2"),
        (99, (7, 2, 1), "batch_size=7 is not a multiple of num_skips=2"),
        (4, (8, 2, 2), "skip_window=2 spans 5 words, but the text has only 4"),
        (0, (8, 2, 2), "text has only 0"),
        (99, (0, 2, 1), "batch_size=0"),
        (99, (8, 0, 1), "num_skips=0"),
        (99, (8, 2, -1), "skip_window=-1"),
    ],
)
def test_the_reference_refuses_bad_arguments(n, arguments, message):
    with pytest.raises(ValueError, match=message):
        generate_batch(np.arange(n), *arguments, rng_of())


# ---- skipgram_pairs, vectorised


@given(texts, windows, seeds)
def test_without_shrinking_all_pairs_are_there_once(ids, window, seed):
    centers, contexts = skipgram_pairs(np.array(ids, np.int32), window, rng_of(seed), shrink=False)
    assert centers.dtype == contexts.dtype == np.int32
    assert counted(centers, contexts) == all_pairs(ids, window)


@given(st.integers(2, 40), windows, seeds)
def test_with_shrinking_each_center_takes_all_words_within_its_reach(n, window, seed):
    centers, contexts = skipgram_pairs(np.arange(n), window, rng_of(seed))
    assert_each_center_has_one_full_reach(centers, contexts, n, window)


def test_a_reach_of_zero_makes_no_center():
    centers, contexts = pairs_within([5, 6, 7], [0, 1, 0])
    assert counted(centers, contexts) == Counter([(6, 5), (6, 7)])
    assert pairs_within([5, 6], [0, 0])[0].shape == (0,)


def test_shrinking_gives_the_triangular_law():
    n, window = 100_000, 5
    centers, contexts = skipgram_pairs(np.arange(n), window, rng_of(2))
    offsets = Counter((contexts - centers).tolist())
    for distance in range(1, window + 1):
        for offset in (-distance, distance):
            assert_within_5_sigma(offsets[offset], n - distance, (window - distance + 1) / window)


@pytest.mark.parametrize("window", [0, -2])
def test_a_window_must_be_positive(window):
    with pytest.raises(ValueError, match=f"window={window}"):
        skipgram_pairs([1, 2, 3], window, rng_of())


# ---- subsample and shard


def test_subsampling_keeps_each_word_with_its_probability_and_in_order():
    ids = np.tile(np.arange(4, dtype=np.int32), 20_000)
    keep = np.array([0.0, 0.1, 0.7, 1.0])
    left = subsample(ids, keep, rng_of(3))
    assert left.dtype == np.int32
    seen = np.bincount(left, minlength=4)
    assert seen[0] == 0 and seen[3] == 20_000
    assert_within_5_sigma(seen[1], 20_000, 0.1)
    assert_within_5_sigma(seen[2], 20_000, 0.7)
    all_different = subsample(np.arange(1_000), np.full(1_000, 0.5), rng_of(4))
    assert (np.diff(all_different) > 0).all()


@given(st.integers(0, 200), st.integers(1, 20))
def test_shards_are_disjoint_complete_and_even(n, size):
    shards = [shard(np.arange(n), rank, size) for rank in range(size)]
    assert np.concatenate(shards).tolist() == list(range(n))
    lengths = [len(part) for part in shards]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0), (0, -1)])
def test_a_shard_needs_a_rank_below_the_size(rank, size):
    with pytest.raises(ValueError, match=f"rank={rank} of size={size}"):
        shard(np.arange(9), rank, size)


# ---- pair_batches


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), windows, st.integers(1, 15), seeds)
def test_an_epoch_of_batches_is_all_pairs_also_across_blocks(ids, window, block, seed):
    found = epoch(np.array(ids), 1, window, rng_of(seed), block=block, shrink=False)
    assert counted(*found) == all_pairs(ids, window)


@given(st.integers(2, 40), windows, st.integers(1, 15), seeds)
def test_a_center_keeps_one_reach_across_blocks(n, window, block, seed):
    centers, contexts = epoch(np.arange(n), 1, window, rng_of(seed), block=block)
    assert_each_center_has_one_full_reach(centers, contexts, n, window)


@given(st.integers(1, 300), st.integers(1, 60), seeds)
def test_only_the_last_partial_batch_is_dropped(batch_size, block, seed):
    ids, window = np.arange(60), 3
    legal = all_pairs(ids.tolist(), window)
    batches = list(pair_batches(ids, batch_size, window, rng_of(seed), block=block, shrink=False))
    assert len(batches) == legal.total() // batch_size
    for centers, contexts in batches:
        assert centers.shape == contexts.shape == (batch_size,)
        assert centers.dtype == contexts.dtype == np.int32
    assert not sum((counted(*batch) for batch in batches), Counter()) - legal


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


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (9, {"batch_size": 0}, "batch_size=0"),
        (9, {"window": 0}, "window=0"),
        (9, {"block": 0}, "block=0"),
        (5, {"batch_size": 15}, "batch_size=15, .*5 words with window=2 give at most 14 pairs"),
        (2, {"batch_size": 3}, "at most 2 pairs"),
        (1, {"batch_size": 1}, "at most 0 pairs"),
        (0, {"batch_size": 1}, "at most 0 pairs"),
    ],
)
def test_batches_refuse_bad_arguments_at_once(n, options, message):
    with pytest.raises(ValueError, match=message):
        pair_batches(np.arange(n), rng=rng_of(), **{"batch_size": 4, "window": 2, **options})
