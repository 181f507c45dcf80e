"""The local steps of lesson 16 on tables here and on servers: against plain steps, with one worker and with two."""

import numpy as np
import pytest
import tensorflow as tf

from helpers.cluster import sharded_tables
from helpers.cluster.parameter_servers import start_servers
from lesson_parts.server_steps import local_steps

pytestmark = pytest.mark.servers
ROWS, DIM, BATCH, NOISE, LR = 20_001, 16, 32, 8, 0.3


@pytest.fixture(scope="module")
def cluster():
    with start_servers(2, 2) as cluster:
        yield cluster


def loss(rows, others, biases):
    batch = tf.shape(rows)[0]
    true = tf.reduce_sum(rows * others[:batch], axis=1) + biases[:batch]
    noise = tf.matmul(rows, others[batch:], transpose_b=True) + biases[batch:]
    return tf.reduce_mean(tf.nn.softplus(-true) + tf.reduce_sum(tf.nn.softplus(noise), axis=1))


def draw(k, seed=0):
    """The rows of k steps: of the centers, of the others, of their biases. Few words, so that steps share rows."""
    rng = np.random.default_rng(seed)
    words = rng.choice(ROWS, 60, replace=False).astype(np.int32)
    centers, others = rng.choice(words, (k, BATCH)), rng.choice(words, (k, BATCH + NOISE))
    return [centers, others, others]


def started():
    rng = np.random.default_rng(1)
    return [rng.normal(0, 0.3, shape).astype(np.float32) for shape in ((ROWS, DIM), (ROWS, DIM), (ROWS,))]


def plain(tables, ids):
    """One step of `sgd` after the other."""
    losses = []
    for some in zip(*ids, strict=True):
        with tf.GradientTape() as tape:
            value = loss(*map(sharded_tables.lookup, tables, some))
        for table, gradients in zip(tables, sharded_tables.gradients(tape, value, tables), strict=True):
            sharded_tables.sgd(table, gradients, LR)
        losses.append(value)
    return float(np.mean(losses))


def numbers(tables):
    return [tf.convert_to_tensor(table).numpy() for table in tables]


@pytest.mark.parametrize(("k", "tolerance"), [(1, 1e-6), (2, 1e-6), (40, 1e-5)])
def test_k_local_steps_are_k_plain_steps(k, tolerance):
    """The tolerance is that of sums taken in another order: of duplicate rows, and of the changes of k steps."""
    ids = draw(k)
    one, other = ([tf.Variable(start) for start in started()] for _ in range(2))
    expected = plain(one, ids)
    found = tf.function(lambda: local_steps(other, ids, loss, LR))()
    assert float(found) == pytest.approx(expected, rel=1e-4)
    for mine, his, before in zip(other, one, started(), strict=True):
        np.testing.assert_allclose(mine, his, atol=tolerance)
        assert np.abs(mine - before).max() > 0.001
        untouched = np.setdiff1d(np.arange(ROWS), np.concatenate([part.ravel() for part in ids[:2]]))
        np.testing.assert_array_equal(mine.numpy()[untouched], before[untouched])


def test_rows_are_read_before_they_change():
    """A loss whose gradient does not depend on the rows lets an update in place overtake the reading of its rows."""
    table, ids = tf.Variable(tf.ones([4, 2])), np.zeros([50, 3], np.int32)

    @tf.function
    def steps():
        return local_steps([table], [ids], lambda rows: tf.reduce_sum(rows), 0.01)

    expected = np.mean([6 * (1 - 0.03 * step) for step in range(50)])
    for run in range(20):
        table.assign(tf.ones([4, 2]))
        assert float(steps()) == pytest.approx(expected, abs=1e-4), run
        np.testing.assert_allclose(table, [[-0.5, -0.5], [1, 1], [1, 1], [1, 1]], atol=1e-5)
    graph = steps.get_concrete_function().graph.as_graph_def()
    used = {node.op for function in graph.library.function for node in function.node_def} | {n.op for n in graph.node}
    assert "TensorScatterSub" in used and not used & {"DeepCopy", "InplaceSub"}, "nothing that is not public"


def test_add_finds_the_shard_of_each_row(cluster):
    table = sharded_tables.make_table(cluster.strategy, (ROWS, DIM))
    firsts = np.cumsum([0] + [part.shape[0] for part in sharded_tables.shards(table)])
    assert firsts.tolist() == [0, 10_001, ROWS]
    rows = np.sort([*firsts[:-1], *(firsts[1:] - 1), 5])
    for some in (rows, rows[rows < firsts[1]], rows[rows >= firsts[1]], rows[:0]):
        change = np.arange(1, len(some) + 1, dtype=np.float32)[:, None] * np.ones(DIM, np.float32)
        before = table.numpy()
        sharded_tables.add(table, tf.constant(some, tf.int32), tf.constant(change))
        before[some] += change
        np.testing.assert_array_equal(table.numpy(), before)


def test_on_servers_they_are_the_same_steps(cluster):
    """One call after the other: 40 serial steps, to 1e-5. Two tables lie on two servers, the biases on one."""
    ids, k = draw(40), 10
    expected = [tf.Variable(start) for start in started()]
    mean = plain(expected, ids)
    tables = [sharded_tables.make_table(cluster.strategy, values.shape) for values in started()]
    assert [len(sharded_tables.shards(table)) for table in tables] == [2, 2, 1]
    for table, values in zip(tables, started(), strict=True):
        sharded_tables.add(table, tf.range(ROWS), tf.constant(values))
    assert all(map(np.array_equal, numbers(tables), started()))
    steps = tf.function(lambda some: local_steps(tables, some, loss, LR))
    losses = []
    for first in range(0, 40, k):
        some = [tf.constant(part[first : first + k]) for part in ids]
        losses.append(cluster.coordinator.schedule(steps, (some,)).fetch())
    assert np.mean(losses) == pytest.approx(mean, rel=1e-4)
    for mine, his in zip(numbers(tables), expected, strict=True):
        np.testing.assert_allclose(mine, his, atol=1e-5)


def test_the_changes_of_two_workers_add_up(cluster):
    """With a loss whose gradient is 1 everywhere, each row goes down by lr for each time that it was used."""
    ids, runs, lr = draw(5)[:2], 100, 0.25
    tables = [sharded_tables.make_table(cluster.strategy, (ROWS, DIM)) for _ in ids]

    @tf.function
    def steps():
        local_steps(tables, ids, lambda *rows: sum(map(tf.reduce_sum, rows)), lr)
        return tf.distribute.coordinator.experimental_get_current_worker_index()

    workers = [cluster.coordinator.schedule(steps) for _ in range(runs)]
    cluster.coordinator.join()
    assert {int(worker.fetch()) for worker in workers} == {0, 1}
    for table, some in zip(tables, ids, strict=True):
        used = np.bincount(some.ravel(), minlength=ROWS)[:, None]
        missing = table.numpy() + lr * runs * used
        # Servers add without a lock of their own (lesson 17): two pushes of a row in the same instant may lose parts.
        # A worker that wrote its copy back instead of pushing changes would lose about half.
        assert (missing >= 0).all() and missing.sum() < 0.05 * lr * runs * used.sum() * DIM
