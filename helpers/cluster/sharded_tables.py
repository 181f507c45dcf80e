"""Tables that are cut into shards, one for each parameter server, and steps that touch only some of their rows.

A table is a `tf.Variable` or, above 256 KiB and with several servers, TensorFlow's ShardedVariable: shard i holds the
i-th part of the rows. Save and restore tables by name with `tf.train.Checkpoint(centers=table, ...)`, also to
another number of servers; each server writes and reads its own shards (on several hosts: in a shared directory).
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from helpers.word2vec.model import merge

BLOCK_ROWS = 8192  # rows that are drawn together


def make_table(strategy, shape, low=0.0, high=0.0, seed=0):
    """Make a table on the servers. The coordinator never holds it, no server more than its shard and BLOCK_ROWS rows.

    Parameters
    ----------
    strategy : tf.distribute.ParameterServerStrategy
        Whose servers.
    shape : tuple of int
        (rows, ...).
    low, high : float
        The values are uniform in [low, high), or `low` where both are equal.
    seed : int
        The values depend on it, and not on the number of servers.

    Returns
    -------
    tf.Variable or ShardedVariable
        float32.
    """
    shape = tuple(shape)

    def unwritten(shape=shape, dtype=tf.float32, partition_shape=None, partition_offset=None):
        return tf.raw_ops.Empty(shape=partition_shape or shape, dtype=dtype)

    with strategy.scope():
        table = tf.Variable(unwritten, shape=shape, dtype=tf.float32)
    parts = shards(table)
    firsts = [0, *itertools.accumulate(part.shape[0] for part in parts)]
    with ThreadPoolExecutor(len(parts)) as pool:
        filling = [pool.submit(_fill, part, first, low, high, seed) for part, first in zip(parts, firsts)]
    for filled in filling:
        filled.result()
    return table


def _fill(shard, first, low, high, seed):
    last = first + shard.shape[0]
    width = shard.shape[1:]

    @tf.function
    def fill():
        for block in tf.range(first // BLOCK_ROWS, (last - 1) // BLOCK_ROWS + 1):
            start = block * BLOCK_ROWS
            begin = tf.maximum(start, first)
            end = tf.minimum(start + BLOCK_ROWS, last)
            rows = tf.range(begin, end)
            if low == high:
                values = tf.fill([tf.size(rows), *width], low)
            else:
                drawn = tf.random.stateless_uniform([BLOCK_ROWS, *width], [seed, block], low, high)
                values = drawn[begin - start : end - start]
            tf.raw_ops.ResourceScatterUpdate(resource=shard.handle, indices=rows - first, updates=values)

    with tf.device(shard.device):
        fill.get_concrete_function()()  # called itself, TensorFlow would warn that each shard traces a function anew


def shards(table):
    """The variables that a table consists of: a list of tf.Variable, one for each server that has a part of it."""
    return list(table.variables) if hasattr(table, "variables") else [table]


def lookup(table, ids):
    """Look up rows; each different row is pulled from its server once.

    Call it inside of what is scheduled on a worker: called in the kernel itself, it first copies whole shards there.

    Parameters
    ----------
    table : tf.Variable or ShardedVariable
        From `make_table`.
    ids : tf.Tensor
        int [n].

    Returns
    -------
    tf.Tensor
        float32 [n, ...].
    """
    different, place = tf.unique(ids)
    return tf.gather(tf.nn.embedding_lookup(table, different), place)


def gradients(tape, loss, tables):
    """The gradients of a loss with respect to the shards of tables.

    Parameters
    ----------
    tape : tf.GradientTape
        Watched while the loss was computed.
    loss : tf.Tensor
        A scalar.
    tables : list
        From `make_table`.

    Returns
    -------
    list of list of tf.IndexedSlices
        For each table those of its shards, with all rows different.

    Raises
    ------
    ValueError
        For a loss that does not depend on every table, or was not computed while the tape watched.
    """
    parts = [shards(table) for table in tables]
    found = tape.gradient(loss, sum(parts, []))
    if any(gradient is None for gradient in found):
        raise ValueError("a table without gradient: compute the loss inside the tape, from every table")
    merged = []
    first = 0
    for part in parts:
        last = first + len(part)
        merged.append([merge(gradient) for gradient in found[first:last]])
        first = last
    return merged


def sgd(table, gradients, lr):
    """Push gradients: change the rows that they name, each on its server, and no others.

    Parameters
    ----------
    table : tf.Variable or ShardedVariable
        From `make_table`.
    gradients : list of tf.IndexedSlices
        For each shard of the table, from `gradients`.
    lr : float
    """
    for shard, gradient in zip(shards(table), gradients, strict=True):
        change = lr * gradient.values
        shard.scatter_sub(tf.IndexedSlices(change, gradient.indices))


def add(table, rows, change):
    """Add to rows, on whichever server they are.

    Parameters
    ----------
    table : tf.Variable or ShardedVariable
        From `make_table`.
    rows : tf.Tensor
        int [n], of the whole table.
    change : tf.Tensor
        float32 [n, ...].
    """
    first = 0
    for shard in shards(table):
        last = first + shard.shape[0]
        here = tf.where((rows >= first) & (rows < last))[:, 0]
        local = tf.gather(rows, here) - first
        shard.scatter_add(tf.IndexedSlices(tf.gather(change, here), local))
        first = last


def bundle(step, k):
    """Make k steps one function to schedule.

    Scheduling a function costs the coordinator about as much as a small step costs a worker; a bundle pays that once.

    Parameters
    ----------
    step : callable
        Takes a batch, returns a float32 scalar.
    k : int
        How many steps.

    Returns
    -------
    callable
        `bundle(iterator)` returns the mean of what `step(*next(iterator))` returns; iterator: `iter` of a dataset made
        by `coordinator.create_per_worker_dataset`.
    """

    @tf.function
    def steps(iterator):
        total = 0.0
        for _ in tf.range(k):
            total += step(*next(iterator))
        return total / k

    return steps
