"""The compiled loop against the graph: equal for each block, whatever its sizes; alone and with threads."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from helpers.word2vec import block_trainer, blocks, kernel, merging
from helpers.word2vec.array_replicas import make_array_exchange
from helpers.word2vec.blocks import Blocks

V, LR = 60, 0.1


def random_tables(dim, seed=0, v=V):
    """Rows of length 1, that of UNK 0."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(0, dim**-0.5, (v, dim)).astype(np.float32) for _ in range(2)]
    for table in tables:
        table[0] = 0
    return tables


def highest(v=V):
    """Bounds that some rows reach and others do not; UNK learns nothing."""
    rates = np.linspace(0.02, 0.2, 2 * v, dtype=np.float32).reshape(v, 2).T
    rates[:, 0] = 0
    return list(np.ascontiguousarray(rates))


def cut(n, settings, v=V):
    """A text of n random words as blocks."""
    rng = np.random.default_rng(n)
    text = rng.integers(1, v, n).astype(np.int32)
    noise = rng.integers(1, v, (100, settings.random))
    return blocks.cut_blocks(blocks.pad_text(text, settings), 0, 1, noise, rng, settings)


def by_graph(start, words, settings):
    tables = [tf.Variable(table) for table in start]
    rates = [tf.constant(row) for row in highest(len(start[0]))]
    loss = block_trainer.make_train(tables, rates, settings)(words, LR)
    return [table.numpy() for table in tables], float(loss)


def by_kernel(start, words, settings, threads=1):
    tables = [table.copy() for table in start]
    train = block_trainer.make_kernel_train(tables, highest(len(start[0])), settings, threads)
    return tables, float(train(words, LR))


ONE = Blocks(blocks=1)
CHANGES = [
    {},
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


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: str(changes or "as usual"))
@pytest.mark.parametrize("dim", [1, 13, 128])
def test_blocks_one_after_the_other_are_those_of_the_graph(dim, changes):
    """67 words: the last block is filled up with id 0, and words come twice in a block."""
    settings = replace(ONE, **changes)
    words, start = cut(67, settings), random_tables(dim)
    (expected, expected_loss), (found, loss) = (by(start, words, settings) for by in (by_graph, by_kernel))
    for one, other, before in zip(found, expected, start, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert abs(one - before).max() > 0.01 and not one[0].any()
    assert loss == pytest.approx(expected_loss, rel=1e-5)


def test_threads_train_each_block_once():
    """Blocks of different words: no thread reads what another one writes, so their number has no effect."""
    settings, v = replace(ONE, random=2, window=1, tokens=2), 6 * 40 + 1
    words = np.arange(1, v, dtype=np.int32).reshape(40, 1, 6)
    start = random_tables(8, v=v)
    alone, _ = by_kernel(start, words, settings)
    for threads in (2, 3):
        found, _ = by_kernel(start, words, settings, threads)
        assert all((one == other).all() for one, other in zip(found, alone, strict=True))


def test_sigmoid_to_a_millionth():
    x = np.linspace(-20, 20, 4_001, dtype=np.float32)
    found = [kernel.sigmoid(value) for value in x]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(float))), atol=1e-6)


def test_changes_are_taken_merged_and_added_as_the_graph_does():
    rng = np.random.default_rng(0)
    table, common, total = (rng.normal(size=(9, 5)).astype(np.float32) for _ in range(3))
    total[0], rows = 0, np.array([7, 0, 3], np.int32)
    own, squares, total = np.empty((3, 5), np.float32), np.empty(3, np.float32), total[:3]
    kernel.take_changes(table, common, rows, own, squares)
    np.testing.assert_allclose(own, table[rows] - common[rows], atol=1e-6)
    np.testing.assert_allclose(squares, (own**2).sum(axis=1), rtol=1e-5)
    merged = total.copy()
    kernel.merge_in_place(merged, squares)
    expected = block_trainer.merge_changes(total, squares[:, np.newaxis]).numpy()
    np.testing.assert_allclose(merged, expected, atol=1e-6)
    table_before, common_before = table.copy(), common.copy()
    kernel.add_changes(table, common, rows, own, merged)
    np.testing.assert_allclose(common[rows], common_before[rows] + merged, atol=1e-6)
    np.testing.assert_allclose(table[rows], common_before[rows] + merged, atol=1e-5)
    others = [1, 2, 4, 5, 6, 8]
    assert (table[others] == table_before[others]).all() and (common[others] == common_before[others]).all()


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


def start_compiling(folder, before=""):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", before + COMPILE], stdout=subprocess.PIPE, env=environment, text=True
    )


def ended(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.split()


@pytest.mark.slow
def test_a_cold_cache_is_filled_by_two_at_once_and_a_warm_one_is_used(tmp_path):
    both = [start_compiling(tmp_path) for _ in range(2)]
    assert [ended(process)[0] for process in both] == ["0", "0"]
    assert list(tmp_path.rglob("*.nbc"))
    assert ended(start_compiling(tmp_path)) == ["0", "1", "0"]


@pytest.mark.slow
def test_where_no_folder_can_be_written_it_compiles_each_time(tmp_path):
    """numba refuses to keep anything there; root may write everywhere, so its choice of folders is taken away."""
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
    for _ in range(2):
        assert ended(start_compiling(tmp_path, nowhere)) == ["0", "0", "1"]
    assert not list(tmp_path.rglob("*"))
