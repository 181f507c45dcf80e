"""The same steps in three ways: threads that share tables (Hogwild), ranks that wait for each other, servers.

Each keeps a log with a row for each step: when it ended, who took it, its loss, and its staleness, the number of pushes
between its pull and its own push.
"""

import time

import numpy as np
import tensorflow as tf


def loss_and_gradients(rows, others):
    """The loss of a batch and the gradients of its rows.

    Parameters
    ----------
    rows : tf.Tensor
        Of the n centers, [n, dim].
    others : tf.Tensor
        Of the n contexts, then of the noise words that serve all pairs, [n + noise, dim].
    """
    pairs = rows.shape[0]
    with tf.GradientTape() as tape:
        tape.watch([rows, others])
        true = tf.reduce_sum(rows * others[:pairs], axis=1)
        sampled = rows @ tf.transpose(others[pairs:])
        loss = tf.reduce_mean(tf.nn.softplus(-true))
        loss += 5 * tf.reduce_mean(tf.nn.softplus(sampled))
    return loss, tape.gradient(loss, [rows, others])


def all_or_none(sums):
    """The sums of a step, none before all have come.

    Of ranks that lose one amid a step each has then changed all tables or none.

    Parameters
    ----------
    sums : list of tf.IndexedSlices

    Returns
    -------
    list of tf.IndexedSlices
        The same.
    """
    parts = [part for each in sums for part in (each.values, each.indices)]
    with tf.control_dependencies(parts):
        return [tf.IndexedSlices(tf.identity(each.values), tf.identity(each.indices)) for each in sums]


def rank_step(tables):
    """Make a step that all ranks take together: step(centers, others, lr) returns the loss of this rank's batch.

    `tables` are tf.Variables. No row is changed before all sums are there, so a step is done wholly or not at all.
    """
    import horovod.tensorflow as hvd

    @tf.function
    def step(x, y, lr):
        rows = map(tf.gather, tables, (x, y))
        loss, found = loss_and_gradients(*rows)
        sums = []
        for each, ids, gradient in zip(tables, (x, y), found):
            part = tf.IndexedSlices(gradient, ids, tf.shape(each))
            sums.append(hvd.allreduce(part, op=hvd.Sum))
        for each, total in zip(tables, all_or_none(sums)):
            change = lr * total.values
            each.scatter_sub(tf.IndexedSlices(change, total.indices))
        return loss

    return step


class OnServer:
    """Tables on a parameter server, and a counter that each push raises by one.

    Parameters
    ----------
    cluster : PSCluster
        With one parameter server.
    tables : list of float32 array
        Their values.
    """

    def __init__(self, cluster, tables):
        self.start = tables
        with cluster.strategy.scope():
            self.tables = [tf.Variable(values) for values in tables]
            self.version = tf.Variable(0, dtype=tf.int64)

    def reset(self, tables=None):
        """Start again, with version 0, from these tables or from those of the beginning."""
        for variable, values in zip(self.tables, tables or self.start):
            variable.assign(values)
        self.version.assign(0)

    def pull(self, ids):
        """The version, and the rows of each table."""
        seen = self.version.read_value()
        with tf.control_dependencies([seen]):
            return seen, list(map(tf.gather, self.tables, ids))

    def push(self, ids, gradients, seen, lr):
        """Subtract gradients; returns the number of pushes since version `seen`."""
        pushed = [
            variable.scatter_sub(tf.IndexedSlices(lr * gradient, rows))
            for variable, rows, gradient in zip(self.tables, ids, gradients)
        ]
        with tf.control_dependencies(pushed):
            return self.version.assign_add(1, read_value=True) - 1 - seen


def pull_and_push(model, ids, lr, me):
    """What a worker does with a batch; returns its row of the log, float64 [4].

    Parameters
    ----------
    model : OnServer
    ids : list of tf.Tensor
        Of the centers, and of the others.
    lr : float
    me : tf.Tensor
        The worker's number, float64.
    """
    seen, rows = model.pull(ids)
    loss, gradients = loss_and_gradients(*rows)
    late = model.push(ids, gradients, seen, lr)
    with tf.control_dependencies([late]):
        now = tf.timestamp()
    loss, late = tf.cast(loss, tf.float64), tf.cast(late, tf.float64)
    return tf.stack([now, me, loss, late])


class Hogwild:
    """Tables that threads of this process change without locks.

    Parameters
    ----------
    tables : list of float32 array
        Their values.
    centers, others : int array
        The batches: [batches, n] and [batches, n + noise].
    threads : int
        How many will work on them.

    Attributes
    ----------
    log : list of tuple
        (time, thread, loss, staleness) of each step.
    slow : list of float
        How many times slower each thread is: it sleeps between pull and push, by the median of its healthy steps.
    """

    def __init__(self, tables, centers, others, threads=2):
        self.tables = [tf.Variable(each) for each in tables]
        self.batches = centers, others
        self.slow = [1] * threads
        self.took = [[] for _ in range(threads)]  # seconds of healthy steps
        self.log = []
        self.compute = tf.function(self.pull_and_compute, autograph=False)
        self.push = tf.function(self.subtract, autograph=False)
        self.step(0, 0, 0.0)  # compiles, and changes nothing
        self.log.clear()

    def pull_and_compute(self, *ids):
        """The loss and the gradients of a batch."""
        return loss_and_gradients(*map(tf.gather, self.tables, ids))

    def subtract(self, ids, found, lr):
        """Push gradients."""
        for each, rows, gradient in zip(self.tables, ids, found):
            each.scatter_sub(tf.IndexedSlices(lr * gradient, rows))

    def step(self, thread, batch, lr):
        """One step of a thread with a batch."""
        begin, seen = time.perf_counter(), len(self.log)
        ids = [tf.constant(side[batch]) for side in self.batches]
        loss, found = self.compute(*ids)
        loss, slow = float(loss), self.slow[thread]
        if slow > 1:
            time.sleep((slow - 1) * np.median(self.took[thread]))
        self.push(ids, found, tf.constant(lr))
        late = len(self.log) - seen
        self.log.append((time.time(), thread, loss, late))
        if slow == 1:
            self.took[thread].append(time.perf_counter() - begin)
