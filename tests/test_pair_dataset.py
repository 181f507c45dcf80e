"""The pairs of a text as a tf.data pipeline; lesson 04, which defines it, asserts that an epoch is all pairs."""

import numpy as np
import pytest
import tensorflow as tf
from programs import said_by

from helpers.word2vec.pair_dataset import pair_dataset


def epoch(dataset):
    batches = list(dataset.as_numpy_iterator())
    return np.concatenate([c for c, _ in batches]), np.concatenate([c for _, c in batches])


def test_the_dataset_follows_the_triangular_law_and_each_center_has_one_reach():
    n, window, batch = 20_000, 4, 64
    centers, contexts = epoch(pair_dataset(np.arange(n), batch, window, seed=1, block=2_000))
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


def test_each_epoch_is_shuffled_anew_also_when_repeated_and_a_seed_repeats_them():
    first, other = (pair_dataset(np.arange(3_000), 64, 3, seed=seed) for seed in (5, 6))
    again = pair_dataset(np.arange(3_000), 64, 3, seed=5)
    epochs = [epoch(dataset) for dataset in (first, first, again, again, other)]
    assert np.array_equal(epochs[0], epochs[2]) and np.array_equal(epochs[1], epochs[3])
    centers, _ = epoch(pair_dataset(np.arange(3_000), 64, 3, seed=5).repeat(2))
    for beginning in (epochs[1][0][:64], epochs[4][0][:64], centers[len(centers) // 2 :][:64]):
        assert not np.array_equal(beginning, epochs[0][0][:64])


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


def test_batches_have_static_shapes_and_bad_arguments_are_refused_at_once():
    assert pair_dataset(np.arange(1_000), 128, 5, seed=0).element_spec == (tf.TensorSpec((128,), tf.int32),) * 2
    with pytest.raises(ValueError, match="batch_size=15, .*5 words .*at most 14 pairs"):
        pair_dataset(np.arange(5), 15, 2, seed=0)


@pytest.mark.slow
def test_a_process_with_a_live_iterator_ends():
    program = (
        "import numpy as np; from helpers.word2vec import pair_dataset\n"
        "batches = iter(pair_dataset(np.arange(300_000), 16_384, 5, seed=0))\n"
        "for _ in range(40): next(batches)\n"
    )
    said_by(program)
