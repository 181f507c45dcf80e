"""The pairs of a text as a tf.data pipeline."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from helpers.text.skipgram import skipgram_pairs
from helpers.word2vec.pair_dataset import pair_dataset

BLOCK = 2_000


def epoch(dataset):
    batches = list(dataset.as_numpy_iterator())
    return np.concatenate([c for c, _ in batches]), np.concatenate([c for _, c in batches])


def test_an_epoch_of_the_dataset_is_all_pairs_also_across_blocks():
    ids = np.random.default_rng(0).integers(0, 9, 2 * BLOCK + 100).astype(np.int32)
    expected = skipgram_pairs(ids, 1, np.random.default_rng(0))  # window 1: there is nothing to draw
    found = epoch(pair_dataset(ids, 1_009, 1, seed=0, block=BLOCK))
    lost = Counter(zip(*expected, strict=True)) - Counter(zip(*found, strict=True))
    assert len(found[0]) == len(expected[0]) // 1_009 * 1_009
    assert lost.total() == len(expected[0]) % 1_009  # the last, partial batch


def test_the_dataset_follows_the_triangular_law_and_each_center_has_one_reach():
    n, window, batch = 20_000, 4, 64
    centers, contexts = epoch(pair_dataset(np.arange(n), batch, window, seed=1, block=BLOCK))
    offsets = contexts - centers
    assert len(np.unique(centers * (2 * window + 1) + offsets)) == len(centers)
    for distance in range(1, window + 1):
        share = (window - distance + 1) / window
        sigma = np.sqrt(n * share * (1 - share))
        for offset in (-distance, distance):
            assert abs((offsets == offset).sum() - n * share) <= 5 * sigma + batch + distance
    assert set(offsets.tolist()) == {*range(-window, 0), *range(1, window + 1)}
    left, right = np.bincount(centers[offsets < 0], minlength=n), np.bincount(centers[offsets > 0], minlength=n)
    assert (left[window:-window] != right[window:-window]).sum() < batch  # only where a pair was in the dropped batch


def test_each_epoch_is_shuffled_anew_and_a_seed_repeats_them():
    ids = np.arange(3_000)
    dataset = pair_dataset(ids, 64, 3, seed=5)
    first, second = epoch(dataset), epoch(dataset)
    assert not np.array_equal(first[0][:64], second[0][:64])
    again = pair_dataset(ids, 64, 3, seed=5)
    assert np.array_equal(first, epoch(again)) and np.array_equal(second, epoch(again))
    assert not np.array_equal(first[0][:64], epoch(pair_dataset(ids, 64, 3, seed=6))[0][:64])


def test_repeat_goes_through_different_epochs():
    dataset = pair_dataset(np.arange(1_000), 100, 1, seed=0)
    centers, _ = epoch(dataset.repeat(2))
    half = len(centers) // 2
    assert half == 1_900 and not np.array_equal(centers[:half], centers[half:])


def test_pairs_are_well_mixed_inside_a_block():
    centers, contexts = epoch(pair_dataset(np.arange(10_000), 100, 5, seed=2))
    assert np.abs(np.diff(centers)).mean() == pytest.approx(10_000 / 3, rel=0.05)
    right = contexts > centers
    assert abs(np.corrcoef(right[:-1], right[1:])[0, 1]) < 5 / np.sqrt(len(right))


def test_the_dataset_subsamples_differently_each_epoch():
    ids, keep = np.tile([0, 1, 2], 2_000), np.array([0.0, 0.5, 1.0])
    dataset = pair_dataset(ids, 8, 1, seed=3, keep=keep)
    sizes = []
    for _ in range(3):
        centers, contexts = epoch(dataset)
        assert set(centers.tolist()) | set(contexts.tolist()) == {1, 2}
        sizes.append(len(centers))
        assert abs(len(centers) / 2 + 1 - 3_000) <= 5 * np.sqrt(2_000 * 0.25) + 4
    assert len(set(sizes)) > 1


def test_batches_have_static_shapes_and_feed_a_compiled_loop():
    dataset = pair_dataset(np.arange(1_000), 128, 5, seed=0)
    assert dataset.element_spec == (tf.TensorSpec((128,), tf.int32),) * 2

    @tf.function
    def widest(batches):
        largest = 0
        for centers, contexts in batches:
            largest = tf.maximum(largest, tf.reduce_max(tf.abs(centers - contexts)))
        return largest

    assert widest(dataset).numpy() == 5


@pytest.mark.parametrize(
    ("n", "batch_size", "window", "message"),
    [(5, 15, 2, "batch_size=15, .*5 words .*at most 14 pairs"), (9, 4, 0, "window=0")],
)
def test_the_dataset_refuses_bad_arguments_at_once(n, batch_size, window, message):
    with pytest.raises(ValueError, match=message):
        pair_dataset(np.arange(n), batch_size, window, seed=0)


@pytest.mark.slow
def test_a_process_with_a_live_iterator_ends():
    program = (
        "import numpy as np; from helpers.word2vec import pair_dataset\n"
        "batches = iter(pair_dataset(np.arange(300_000), 16_384, 5, seed=0))\n"
        "for _ in range(40): next(batches)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
