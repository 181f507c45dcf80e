"""What lessons 17 and 20 train with."""

import numpy as np
import pytest
import tensorflow as tf

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
