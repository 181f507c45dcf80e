"""How replicas of the block trainer stay together: what travels, when, and how changes are merged."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import tensorflow as tf


def due_rows(step, size, hot=250):
    """Tell which rows of a table are exchanged at a step.

    The first `hot` each time, the next `hot` every second time, twice as many every fourth time,
    and so on. By Zipf's law a word is as rare as its id is large: so each row changes about
    equally often between two exchanges.

    Parameters
    ----------
    step : int
        Number of the exchange, from 0 on.
    size : int
        Rows of the table.
    hot : int
        Rows that travel each time.

    Returns
    -------
    int32 array [n]
    """
    due = [np.arange(min(hot, size))]
    start, period = hot, 2
    while start < size:
        band = np.arange(start, min(2 * start, size))
        due.append(band[band % period == step % period])
        start, period = 2 * start, 2 * period
    return np.concatenate(due).astype(np.int32)


def merge_changes(total, squares):
    """Merge the changes of all ranks to some rows into one change.

    Changes in different directions are added. Ranks that moved a row the same way have made the
    same progress, so there the sum would overshoot, and their mean is taken: the idea of Adasum
    (Maleki et al., 2021), here for each row. `squares` is the squared length of the sum when the
    changes are at right angles.

    Parameters
    ----------
    total : float32 tensor [..., dim]
        The sum of the changes over the ranks.
    squares : float32 tensor [..., 1]
        The sum over the ranks of the squared length of the change of a row.

    Returns
    -------
    float32 tensor [..., dim]
    """
    length = tf.reduce_sum(total**2, -1, keepdims=True)
    return total * tf.minimum(1.0, tf.math.divide_no_nan(squares, length))


def make_replicas(tables, make_exchange, merge_changes=merge_changes, hvd=None):
    """Make what ranks need to train copies of the tables.

    Parameters
    ----------
    tables : list of two float32 variables or arrays [V, dim]
        What this rank trains.
    make_exchange : function
        `make_exchange` for variables, `make_array_exchange` of array_replicas.py for arrays.
    merge_changes : function
        In place of `merge_changes`.
    hvd : module, optional
        horovod.tensorflow; without it `common` is `tables`, and nothing is exchanged.

    Returns
    -------
    common : list of two float32 variables or arrays [V, dim]
        Equal on all ranks: the start plus all that has travelled.
    exchange, exchange_centers : function
        See `make_exchange`; the second one exchanges rows of the first table only.
    """
    if not hvd:
        return tables, nullcontext, nullcontext
    common = [table.copy() if isinstance(table, np.ndarray) else tf.Variable(table) for table in tables]
    allreduce = partial(hvd.allreduce, op=hvd.Sum, name="changes")
    exchange = make_exchange(tables, common, allreduce, merge_changes)
    exchange_centers = make_exchange(tables[:1], common[:1], allreduce, merge_changes)
    return common, exchange, exchange_centers


def make_exchange(tables, common, allreduce, merge_changes=merge_changes):
    """Make a context in which what this rank has changed travels while the body trains on.

    Parameters
    ----------
    tables : list of float32 variables [V, dim]
        What this rank trains.
    common : list of float32 variables [V, dim]
        Equal on all ranks: the start plus all that has travelled.
    allreduce : function
        The sum over all ranks of a float32 vector. It is called in a second thread and not in a
        tf.function, where it would wait until TensorFlow's only thread has trained.
    merge_changes : function
        In place of `merge_changes`.

    Returns
    -------
    function
        exchange(rows), a context manager; rows: int [n], all different.
    """
    row_numbers = tf.TensorSpec([None], tf.int32)
    vector = tf.TensorSpec([None])
    dim = tables[0].shape[1]

    @tf.function(input_signature=[row_numbers])
    def changed(rows):
        own = [tf.gather(mine, rows) - tf.gather(ours, rows) for mine, ours in zip(tables, common)]
        squares = [tf.reduce_sum(change**2, axis=1) for change in own]
        return tf.concat([tf.reshape(part, [-1]) for part in own + squares], axis=0)

    @tf.function(input_signature=[row_numbers, vector, vector])
    def apply(rows, own, sums):
        numbers = len(tables) * dim * tf.size(rows)
        own = tf.reshape(own[:numbers], [len(tables), -1, dim])
        total = tf.reshape(sums[:numbers], [len(tables), -1, dim])
        merged = merge_changes(total, tf.reshape(sums[numbers:], [len(tables), -1, 1]))
        for i, (table, shared) in enumerate(zip(tables, common)):
            shared.scatter_add(tf.IndexedSlices(merged[i], rows))
            table.scatter_add(tf.IndexedSlices(merged[i] - own[i], rows))

    return beside_training(changed, allreduce, apply)


def beside_training(changed, allreduce, apply):
    """Make a context that sends a message at its start and takes what comes back at its end.

    Parameters
    ----------
    changed : function
        changed(rows) gives the message of this rank.
    allreduce : function
        The sum of the messages over all ranks, computed in a second thread.
    apply : function
        apply(rows, own message, sum)

    Returns
    -------
    function
        exchange(rows), a context manager; rows: int [n], all different.
    """
    thread = ThreadPoolExecutor(1)

    @contextmanager
    def exchange(rows):
        rows = np.asarray(rows, np.int32)
        own = changed(rows)
        sums = thread.submit(allreduce, own)
        yield
        apply(rows, own, sums.result())

    return exchange
