"""The rungs of notebook 06 on two real ranks, against the same rung in one process."""

import sys
from functools import partial

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf

from helpers.cluster.ranks import connect
from helpers.exchange import strategies, training
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec import replicas
from helpers.word2vec.model import make_tables
from helpers.word2vec.replicas import due_rows

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # engines cannot import this file

WORDS, DIM, BATCH, STEPS = 200, 8, 64, 5
EXACT = {
    "tape": (strategies.make_taped, 1e-6),
    "dense": (partial(strategies.make_taped, sparse_as_dense=True), 1e-6),
    "float16": (strategies.make_halved, 1e-3),  # a half has 11 bits, and these gradients are below 1
    "merged": (strategies.make_merged, 1e-6),
    "fused": (strategies.make_fused, 1e-6),
    "accumulated": (partial(strategies.make_fused, parts=4), 1e-6),
}
SUMS = {
    "deltas": strategies.make_deltas,
    "hot and cold": partial(strategies.make_deltas, due=due_rows),
    "changed": strategies.make_changed,
}


@pytest.fixture(scope="module")
def ranks():
    with connect(2) as ranks:
        yield ranks


def batches(seed=0, steps=STEPS, pairs=BATCH):
    return np.random.default_rng(seed).integers(0, WORDS, (steps, 2, pairs), dtype=np.int32)


def train(make, pairs, lr, hvd=None, parts=strategies.PARTS, final=False):
    """The three tables after the steps, and after an exchange of all rows if `final`."""
    strategies.PARTS = parts
    tf.random.set_seed(3)  # the same negatives on each rank, and in one process
    tables = make_tables(WORDS, DIM, seed=0)
    step = make(tables, hvd)
    for centers, contexts in pairs:
        step(centers, contexts, lr)
    if final:
        step([], [], 0.0, np.arange(WORDS))
    return [table.numpy() for table in tables]


def half(make, pairs, lr, parts=strategies.PARTS, final=False):
    """On a rank: its half of every batch."""
    import horovod.tensorflow as hvd

    return train(make, np.split(pairs, hvd.size(), axis=2)[hvd.rank()], lr, hvd, parts, final)


def difference(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_an_average_of_gradients_is_the_serial_step(name, ranks):
    make, tolerance = EXACT[name]
    serial = train(make, batches(), 1.0)
    first, second = ranks.run(half, make, batches(), 1.0)
    assert difference(first, second) == 0
    assert difference(first, serial) < tolerance
    assert difference(serial, train(make, batches(), 0.0)) > 0.05


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_changes_after_every_step_is_the_serial_step(name, ranks):
    """lr / 2 on each rank, because the sum is not divided by the number of ranks."""
    serial = train(SUMS[name], batches(), 1.0, parts=1)
    first, second = ranks.run(half, SUMS[name], batches(), 0.5, parts=1)
    assert difference(first, second) == 0
    assert difference(first, serial) < 1e-6


def test_what_travels_beside_the_computation_arrives_one_step_later(ranks):
    serial = train(strategies.make_overlapped, batches(steps=1), 1.0, parts=1)
    before = ranks.run(half, strategies.make_overlapped, batches(steps=1), 0.5, parts=1)
    after = ranks.run(half, strategies.make_overlapped, batches(steps=1), 0.5, parts=1, final=True)
    assert difference(*before) > 1e-3
    assert difference(*after) < 1e-6 and difference(after[0], serial) < 1e-6


@pytest.mark.parametrize("name", ["deltas", "changed"])
def test_replicas_are_equal_after_each_exchange_of_several_steps(name, ranks):
    for steps in (1, 3):
        first, second = ranks.run(half, SUMS[name], batches(steps=steps, pairs=BATCH * strategies.PARTS), 0.3)
        assert difference(first, second) == 0
    assert np.isfinite(first[0]).all()


def hot_and_cold(pairs):
    """On a rank: the tables after each step, the last one an exchange of all rows, when only 10 rows are hot."""
    import horovod.tensorflow as hvd

    before, replicas.HOT = replicas.HOT, 10
    try:
        strategies.PARTS = 16
        tables = make_tables(WORDS, DIM, seed=0)
        step, found = strategies.make_deltas(tables, hvd, due_rows), []
        for centers, contexts in np.split(pairs, hvd.size(), axis=2)[hvd.rank()]:
            step(centers, contexts, 0.3)
            found.append(tables[0].numpy())
        step([], [], 0.0, np.arange(WORDS))
        due = [due_rows(i, WORDS) for i in range(len(pairs))]
        return found, due, tables[0].numpy()
    finally:
        replicas.HOT = before


def test_the_rows_that_are_due_are_equal_and_the_others_wait(ranks):
    (first, due, last), (second, _, other) = ranks.run(hot_and_cold, batches(pairs=BATCH * strategies.PARTS))
    for one, two, rows in zip(first, second, due, strict=True):
        same = (one == two).all(axis=1)
        assert same[rows].all() and not same.all()
    assert (last == other).all()


def test_accumulated_gradients_are_those_of_the_bigger_batch():
    bigger = train(strategies.make_fused, batches(), 1.0)
    assert difference(bigger, train(partial(strategies.make_fused, parts=4), batches(), 1.0)) < 1e-6


def test_packed_gradients_come_back_merged():
    rows = tf.constant([3, 1, 3])
    slopes = [tf.IndexedSlices(tf.reshape(tf.range(6.0), [3, 2]), rows)] * 2 + [tf.IndexedSlices(tf.range(3.0), rows)]
    back = strategies.unpack(strategies.pack(slopes, WORDS), WORDS)
    for one, other in zip(slopes, back, strict=True):
        dense = [np.zeros([5, *one.values.shape[1:]]) for _ in range(2)]
        for total, part in zip(dense, (one, other), strict=True):
            np.add.at(total, part.indices.numpy(), part.values.numpy())
        assert len(other.indices) == 2 and (dense[0] == dense[1]).all()


def climb_short(name, n):
    """On a rank: `n` words for both ranks together, of which rank 0 gets fewer."""
    import horovod.tensorflow as hvd

    strategies.PARTS = 16
    vocab = Vocab.build(load_corpus("planted", n_words=5_000, progress=False).words)
    rung = training.STRATEGIES[name]._replace(batch=96 if training.STRATEGIES[name].batch == 96 else 160)
    found = training.train_strategy(rung, np.arange(100, 100 + n), vocab, hvd, pairs=3_200)
    return found["steps"], found["pairs"], found["vectors"]


@pytest.mark.parametrize(("name", "n"), [("canonical", 21), ("merged rows", 1), ("accumulation", 81), ("overlap", 81)])
def test_a_rank_with_a_short_or_empty_shard_ends_with_the_others(name, n, ranks):
    (steps, pairs, vectors), (other_steps, other_pairs, other) = ranks.run(climb_short, name, n)
    assert steps == other_steps >= 4 and pairs <= 1.1 * other_pairs
    assert np.isfinite(vectors).all() and np.abs(vectors - other).max() < 1e-5
    assert n > 1 or pairs == other_pairs == 0


@pytest.mark.parametrize("name", training.STRATEGIES)
def test_every_rung_has_a_plan(name):
    words = load_corpus("planted", n_words=20_000, progress=False).words
    vocab = Vocab.build(words)
    text = vocab.encode(words), vocab
    pairs, messages, sent = training.planned(name, *text)
    assert pairs > 0 and messages >= 1 and sent > 0
    silent = 2 * pairs / 0.01
    slow, fast = (training.predicted(name, *text, silent, (0.001, bandwidth)) for bandwidth in (1e6, 1e9))
    assert slow < fast <= silent * (1 + 1e-9)


def test_the_fit_finds_latency_and_bandwidth():
    timings = [("allreduce", n, 0.002 + n / 5e8) for n in (1e3, 1e5, 1e7)]
    assert training.fit(timings) == pytest.approx((0.002, 5e8))
