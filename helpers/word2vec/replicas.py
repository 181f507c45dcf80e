"""How the replicas of the block trainer stay together: what travels, when, and how changes are combined."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import tensorflow as tf


def due_rows(step, size, hot=250):
    """The rows of a table of `size` to exchange at a step: int32 [n]. The first `hot` each time, the next `hot` every
    second time, twice as many every fourth time, and so on.

    By Zipf's law a word is as rare as its id is large: so each row changes about equally often between two exchanges.
    """
    due, start, period = [np.arange(min(hot, size))], hot, 2
    while start < size:
        first = start + (step - start) % period
        due.append(np.arange(first, min(2 * start, size), period))
        start, period = 2 * start, 2 * period
    return np.concatenate(due).astype(np.int32)


WIRE_SCALE = 64  # brings changes and their squares to where 16-bit numbers are dense


def make_replicas(tables, hvd, half=False):
    """What ranks need to train copies of the tables: (common, exchange, exchange_centers), see `make_exchange`.

    exchange_centers: of the rows of the first table only. hvd: horovod.tensorflow, or None in one process; then
    `common` is `tables` and nothing is exchanged. half: send float16, half the bytes; replicas stay equal.
    """
    if not hvd:
        return tables, nullcontext, nullcontext
    common = [tf.Variable(table) for table in tables]
    allreduce = partial(hvd.allreduce, op=hvd.Sum, name="changes")
    if half:
        allreduce = partial(allreduce_in_half, hvd)
    exchange, exchange_centers = (make_exchange(tables[:n], common[:n], allreduce, merge_changes) for n in (2, 1))
    return common, exchange, exchange_centers


def allreduce_in_half(hvd, vector):
    """The sum over all ranks of a float32 vector, sent as float16: about three digits of numbers from 1e-9 to 1,000."""
    return hvd.allreduce(vector * WIRE_SCALE, op=hvd.Sum, name="changes", compression=hvd.Compression.fp16) / WIRE_SCALE


def make_exchange(tables, common, allreduce, combine):
    """exchange(rows), a context: what this rank has changed in these rows travels while the body trains on.

    rows: int [n], all different. `tables` is what this rank trains; `common`, equal on all ranks, is the start plus
    all that has travelled. allreduce: the sum over all ranks of a float32 vector. It is called in a second thread and
    not in a tf.function, where it would wait until TensorFlow's only thread has trained. combine: see `merge_changes`.
    """
    thread, ids, vector = ThreadPoolExecutor(1), tf.TensorSpec([None], tf.int32), tf.TensorSpec([None])
    n, dim = len(tables), tables[0].shape[1]

    @tf.function(input_signature=[ids])
    def changed(rows):
        own = [tf.gather(tables[i], rows) - tf.gather(common[i], rows) for i in range(n)]
        squares = [tf.reduce_sum(change**2, axis=1) for change in own]
        return tf.concat([tf.reshape(part, [-1]) for part in own + squares], axis=0)

    @tf.function(input_signature=[ids, vector, vector])
    def apply(rows, own, sums):
        numbers = n * dim * tf.size(rows)
        own, total = (tf.reshape(both[:numbers], [n, -1, dim]) for both in (own, sums))
        combined = combine(total, tf.reshape(sums[numbers:], [n, -1, 1]))
        for i in range(n):
            common[i].scatter_add(tf.IndexedSlices(combined[i], rows))
            tables[i].scatter_add(tf.IndexedSlices(combined[i] - own[i], rows))

    @contextmanager
    def exchange(rows):
        rows = tf.constant(rows, tf.int32)
        own = changed(rows)
        sums = thread.submit(allreduce, own)
        yield
        apply(rows, own, sums.result())

    return exchange


def merge_changes(total, squares):
    """The changes of all ranks to some rows as one change, float32, like `total`.

    total: the sum of the changes, float32 [..., dim]. squares: the sum over the ranks of the squared length of the
    change of a row, [..., 1]. Changes in different directions are added. Ranks that moved a row the same way have made
    the same progress, so there the sum would overshoot, and their mean is taken: the idea of Adasum (Maleki et al.,
    2021), here for each row. `squares` is the squared length of the sum when the changes are at right angles.
    """
    length = tf.reduce_sum(total**2, -1, keepdims=True)
    return total * tf.minimum(1.0, tf.math.divide_no_nan(squares, length))
