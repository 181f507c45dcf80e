"""What lessons 17 and 20 train with."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from shown import taken

from lesson_parts.three_ways import all_or_none


def test_no_table_is_changed_before_all_sums_have_come():
    tables = [tf.Variable(tf.zeros([3, 2])) for _ in range(2)]
    ids = tf.constant([0, 2])

    @tf.function
    def step(ids_come):
        values = tf.ones([2, 2])
        late = tf.identity(ids)
        with tf.control_dependencies([tf.debugging.Assert(ids_come, ["the ids of the second sum did not come"])]):
            late = tf.identity(late)
        sums = [tf.IndexedSlices(values, ids), tf.IndexedSlices(values, late)]
        for each, total in zip(tables, all_or_none(sums), strict=True):
            each.scatter_add(total)

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant(False))
    assert not np.any(tables)
    step(tf.constant(True))
    assert np.array_equal(tables, [[[1, 1], [0, 0], [1, 1]]] * 2)


def test_each_thread_of_lesson_20_steps_with_its_own_batches():
    class Model:
        def __init__(self):
            self.seen = {0: [], 1: []}

        def step(self, thread, batch, lr):
            self.seen[thread].append((batch, lr))

    model = Model()
    threads = taken("20", "work run_threads", ThreadPoolExecutor=ThreadPoolExecutor, LR=0.5)
    futures = threads.run_threads(model, [0, 2], [1])
    assert [future.result() for future in futures] == [None, None]
    assert model.seen == {0: [(0, 0.5), (2, 0.5)], 1: [(1, 0.5)]}
