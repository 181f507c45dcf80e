"""The compiled loop against the graph: equal for each block, whatever its sizes; alone and with threads."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from programs import said_by
from test_block_trainer import LR, blocks_of, highest, random_tables, trained

from helpers.exchange import merging
from helpers.word2vec import block_trainer, kernel
from helpers.word2vec.array_replicas import make_array_exchange
from helpers.word2vec.blocks import Blocks


def by_kernel(start, words, settings, threads=1):
    tables = [table.copy() for table in start]
    train = block_trainer.make_kernel_train(tables, highest(len(start[0])), settings, threads)
    return tables, float(train(words, LR))


ONE = Blocks(blocks=1)
CHANGES = [
    {"window": 1},
    {"window": 2},
    {"window": 4},
    {"window": 8},
    {"random": 1},
    {"random": 24},
    {"tokens": 1},
    {"tokens": 7},
    {"tokens": 3, "window": 6, "random": 5},
    {"negatives": 2.5},
    {"largest_logit": 0.5},
    {"largest_logit": 30.0},
]
CASES = [*((dim, {}) for dim in (1, 13, 128)), *((13, changes) for changes in CHANGES)]


@pytest.mark.parametrize(("dim", "changes"), CASES, ids=str)
def test_blocks_one_after_the_other_are_those_of_the_graph(dim, changes):
    """67 words: the last block is filled up with id 0, and words come twice in a block."""
    settings = replace(ONE, **changes)
    _, words = blocks_of(67, seed=67, settings=settings, v=60)
    start = random_tables(0, dim**-0.5, 60, dim)
    expected, expected_loss = trained(start, words, settings=settings)
    found, loss = by_kernel(start, words, settings)
    for one, other, before in zip(found, expected, start, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert abs(one - before).max() > 0.01 and not one[0].any()
    assert loss == pytest.approx(expected_loss, rel=1e-5)


def test_threads_train_each_block_once():
    """Blocks of different words: no thread reads what another one writes, so their number has no effect."""
    settings, v = replace(ONE, random=2, window=1, tokens=2), 6 * 40 + 1
    words = np.arange(1, v, dtype=np.int32).reshape(40, 1, 6)
    start = random_tables(0, v=v, dim=8)
    alone, _ = by_kernel(start, words, settings)
    for threads in (2, 3):
        found, _ = by_kernel(start, words, settings, threads)
        assert all((one == other).all() for one, other in zip(found, alone, strict=True))


def test_sigmoid_to_a_millionth():
    x = np.linspace(-20, 20, 4_001, dtype=np.float32)
    found = [kernel.sigmoid(value) for value in x]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(float))), atol=1e-6)


@pytest.mark.parametrize("rule", [None, lambda total, squares: total / 2], ids=["usual rule", "another"])
def test_an_exchange_of_arrays_is_that_of_variables(rule):
    """Two ranks, of which the other has changed the same, and something else while this one trained on."""
    rng = np.random.default_rng(0)
    tables, common, later = (list(rng.normal(size=(2, 20, 5)).astype(np.float32)) for _ in range(3))
    rows = np.array([3, 11, 0])
    rules = {"merge_changes": rule} if rule else {}
    noise = rng.normal(size=2 * len(rows) * 5).astype(np.float32)

    def allreduce(own):
        own = np.array(own)
        own[: len(noise)] += noise
        own[len(noise) :] *= 2
        return tf.constant(own)

    def exchanged(make, kind, add):
        mine, ours = [kind(table) for table in tables], [kind(table) for table in common]
        with make(mine, ours, allreduce, **rules)(rows):
            for table, change in zip(mine, later, strict=True):
                add(table, change)
        return [np.array(table) for table in (*mine, *ours)]

    by_graph = exchanged(merging.make_exchange, tf.Variable, lambda table, change: table.assign_add(change))
    by_loops = exchanged(make_array_exchange, np.copy, lambda table, change: np.add(table, change, out=table))
    for one, expected, before in zip(by_loops, by_graph, [*tables, *common], strict=True):
        np.testing.assert_allclose(one, expected, atol=1e-5)
        assert abs(one - before)[rows].max() > 0.1


# ---- What is compiled, kept and found again

COMPILE = """
import numpy as np, sys
from helpers.word2vec import kernel
print(sum(kernel.merge_in_place.stats.cache_hits.values()), end=" ")
total = np.ones((2, 3), np.float32)
kernel.merge_in_place(total, np.full(2, 1.5, np.float32))
assert (total == 0.5).all()
print(sum(kernel.merge_in_place.stats.cache_hits.values()), sum(kernel.merge_in_place.stats.cache_misses.values()))
"""


def compile_in(folder, before=""):
    """What a process says of the cache in this folder: hits before, hits and misses after the first call."""
    return said_by(before + COMPILE, NUMBA_CACHE_DIR=str(folder)).split()


@pytest.mark.slow
def test_what_is_compiled_is_kept_and_found_again_where_a_folder_can_be_written(tmp_path):
    """numba refuses to keep anything elsewhere; root may write everywhere, so its choice of folders is taken away."""
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
    assert compile_in(tmp_path, nowhere) == ["0", "0", "1"]
    assert not list(tmp_path.rglob("*"))
    assert compile_in(tmp_path) == ["0", "0", "1"]
    assert list(tmp_path.rglob("*.nbc"))
    assert compile_in(tmp_path) == ["0", "1", "0"]
