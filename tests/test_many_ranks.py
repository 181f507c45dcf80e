"""The harness of the runs of lesson 14."""

from types import SimpleNamespace

import numpy as np
import pytest

from helpers.exchange.merging import merge_changes
from helpers.text.vocab import Vocab
from helpers.word2vec.blocks import Blocks
from lesson_parts.many_ranks import merge_contexts, noting, train_text

SIZE = 60
VOCAB = Vocab(["UNK", *map(str, range(1, SIZE))], [0] + [500] * (SIZE - 1))
TEXT = np.random.default_rng(0).integers(1, SIZE, 12_000).astype(np.int32)


def test_the_contexts_are_merged_and_the_centers_left():
    own, common = np.ones((2, 5, 4), np.float32), np.zeros((2, 5, 4), np.float32)
    two_alike = SimpleNamespace(allreduce=lambda change, op: 2 * change, Sum="sum")
    merge_contexts(list(own), list(common), merge_changes, two_alike)
    np.testing.assert_allclose(common, [np.zeros((5, 4)), np.ones((5, 4))])


def test_the_factor_of_two_equal_changes_is_a_half():
    total, squares = np.full((2, 3, 4), 2, np.float32), np.full((2, 3, 1), 8, np.float32)
    factors = []
    merged = noting(merge_changes, factors)(total, squares)
    np.testing.assert_array_equal(merged, merge_changes(total, squares))
    noting(merge_changes, factors)(0 * total, 0 * squares)  # nothing has changed: nothing to note
    assert factors == [pytest.approx(0.5)]


def two_alike():
    """Two ranks that change the same: each allreduce doubles, but for how many intervals there are."""
    return SimpleNamespace(
        allreduce=lambda own, op, name=None: own if op == "max" else 2 * own, Sum="sum", Max="max", rank=lambda: 0
    )


def test_factors_are_noted_between_intervals_and_not_at_the_end():
    factors = []
    train_text(TEXT, VOCAB, hvd=two_alike(), epochs=1, blocks=Blocks(intervals=3), factors=factors)
    assert factors == [pytest.approx(0.5)] * 2  # the first of three exchanges finds nothing changed


def test_the_learning_rate_falls_as_it_is_told():
    asked = []

    def fall(step, steps):
        asked.append((step, steps))
        return 0.5

    train_text(TEXT, VOCAB, epochs=1, blocks=Blocks(intervals=3), fall=fall)
    assert asked == [(0, 3), (1, 3), (2, 3)]
