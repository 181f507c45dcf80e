"""The harness of lesson 19, and the byte count of 18: how far tables are apart, a table on servers, homes."""

import math
import time

import matplotlib.pyplot as plt
import numpy as np
import psutil
import tensorflow as tf

from helpers.cluster.sharded_tables import bundle, lookup, make_table, shards
from helpers.plots import COLORS
from helpers.word2vec.model import merge

STEPS = 20  # of a bundle

# ---- Equal to one process


def joined(shards):
    """The table whose row number id is row id // n of shard id % n, of n shards: an array [V, d]."""
    table = np.empty((sum(map(len, shards)), shards[0].shape[1]), "float32")
    for owner, shard in enumerate(shards):
        table[owner :: len(shards)] = shard
    return table


def apart_from_one(one, of_ranks):
    """How far ranks are from one process: the largest difference in the table, and in the dense layers.

    Parameters
    ----------
    one : (array [V, d], list of array)
        The table of one process, and the weights of its dense layers.
    of_ranks : list of (array, list of array)
        Of each rank its shard, and the weights of its dense layers.

    Returns
    -------
    (float, float)
    """
    table, dense = one
    in_table = np.abs(joined([shard for shard, _ in of_ranks]) - table).max()
    in_dense = max(np.abs(found - expected).max() for _, own in of_ranks for found, expected in zip(own, dense))
    return in_table, in_dense


# ---- A table on servers


def _step_on(strategy, make_top, batch_of, rows, dim, lr=0.05):
    """Make a step on a table of its own: step(number) trains batch `number` with Adagrad and returns its loss.

    Parameters
    ----------
    strategy : tf.distribute.Strategy
        Where the table, the layers on top and all accumulators live.
    make_top : callable
        make_top(dim) returns the layers, of either Keras.
    batch_of : callable
        batch_of(number, rows) returns ids and labels.
    rows, dim : int
        Of the table.
    lr : float
    """
    table = make_table(strategy, (rows, dim), -0.05, 0.05)
    squares = make_table(strategy, (rows, dim), 0.1, 0.1)
    with strategy.scope():
        weights = (top := make_top(dim)).trainable_variables
        dense_squares = [tf.Variable(tf.fill(weight.shape, 0.1)) for weight in weights]
    parts, settings = shards(table), {"lr": lr, "epsilon": 1e-7}

    def step(number):
        ids, labels = batch_of(tf.cast(number, tf.int32), rows)
        with tf.GradientTape() as tape:
            guesses = top(lookup(table, ids))[:, 0]
            loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels, guesses))
        found = tape.gradient(loss, [*parts, *weights])
        for part, square, gradient in zip(parts, shards(squares), map(merge, found)):
            tf.raw_ops.ResourceSparseApplyAdagradV2(
                var=part.handle, accum=square.handle, grad=gradient.values, indices=gradient.indices, **settings
            )
        for weight, square, gradient in zip(weights, dense_squares, found[len(parts) :]):
            tf.raw_ops.ResourceApplyAdagradV2(var=weight.handle, accum=square.handle, grad=gradient, **settings)
        return loss

    return step


def zipf_batch(number, rows, ids=1024):
    """Batch `number` of a table: ids, int32, small ones most often, and a label of each, 0.0 or 1.0.

    The logarithm of id + 1 is drawn evenly. The same number and rows give the same batch in every process.
    """
    drawn = tf.random.stateless_uniform([ids], [0, number], dtype=tf.float64)
    found = tf.cast(tf.exp(drawn * math.log(rows)), tf.int32) - 1
    odd = tf.cast(found, tf.int64) * 7919 // 13 % 2
    return found, tf.cast(odd, tf.float32)


def two_batches(number, rows):
    """Batches 2 * number and 2 * number + 1 of `zipf_batch`, as one: those of both ranks."""
    found = [zipf_batch(2 * number + part, rows) for part in range(2)]
    return [tf.concat(column, 0) for column in zip(*found)]


def _numbers(part, parts):
    """Batch numbers part, part + parts, ... as a dataset for `bundle`."""
    return tf.data.Dataset.range(10**9).shard(parts, part).map(lambda number: (number,))


def home_on_servers(cluster, make_top, batch_of, rows, dim):
    """Put the table onto the servers of a PSCluster; returns run(bundles), whose bundles the workers share."""
    steps = bundle(_step_on(cluster.strategy, make_top, batch_of, rows, dim), STEPS)
    workers = len(cluster.spec["worker"])
    number = tf.distribute.coordinator.experimental_get_current_worker_index
    batches = iter(cluster.coordinator.create_per_worker_dataset(lambda: _numbers(number(), workers)))

    def run(bundles):
        began = time.perf_counter()
        for loss in [cluster.coordinator.schedule(steps, (batches,)) for _ in range(bundles)]:
            loss.fetch()
        return time.perf_counter() - began

    run(2 * workers)  # compiles
    return run


# ---- Measuring


def loopback_bytes():
    """All that this machine has sent over its loopback interface."""
    found = psutil.net_io_counters(pernic=True)
    return next(found[name].bytes_sent for name in ("lo", "lo0") if name in found)


def count_bytes(exchange, batches):
    """The bytes that the machine sends in an exchange(batch): the mean of all batches, the least of five rounds."""
    means = []
    for _ in range(5):
        before = loopback_bytes()
        for batch in batches:
            exchange(batch)
        means.append((loopback_bytes() - before) / len(batches))
    return min(means)


def twenty(step, batch_of, rows):
    """Make 20 steps one function of the number of the first batch, which returns their mean loss, and compile it.

    Parameters
    ----------
    step : callable
        Takes what `batch_of` returns; returns a loss.
    batch_of : callable
        batch_of(number, rows) returns ids and labels.
    rows : int
        Of the table.
    """

    @tf.function
    def steps(first):
        total = 0.0
        for number in tf.range(first, first + STEPS):
            total += step(*batch_of(number, rows))
        return total / STEPS

    steps(tf.constant(1_000_000))
    return steps


def timed(steps, calls):
    """The losses of so many calls of what `twenty` made, from batch 0 on, and the seconds that they took."""
    began = time.perf_counter()
    losses = [float(steps(tf.constant(STEPS * call))) for call in range(calls)]
    return losses, time.perf_counter() - began


def paused(processes, measure):
    """Make `measure` a function that first stops these idle processes (psutil.Process), and then lets them go on."""

    def measured():
        for process in processes:
            process.suspend()
        try:
            return measure()
        finally:
            for process in processes:
                process.resume()

    return measured


def draw_bytes(alltoall, allgather):
    """Draw what a rank sends with 2 to 8 ranks, by two formulas: MB of the number of ranks. Returns the axes."""
    sizes = np.arange(2, 9)
    _, axes = plt.subplots(figsize=(6, 3))
    axes.plot(sizes, alltoall(sizes), "o-", color=COLORS[1])
    axes.plot(sizes, allgather(sizes), "o-", color=COLORS[2])
    axes.text(6.2, 0.2, "cut table, alltoall", color=COLORS[1])
    axes.text(3.2, 2.2, "replicas, allgather", color=COLORS[2])
    axes.set(xlabel="ranks", ylabel="MB that a rank sends", ylim=(0, None))
    return axes


def draw_turns(found, unit, colors):
    """Draw and print {name: a number of each turn}: a dot is a turn, a bar the median. Returns the axes."""
    _, axes = plt.subplots(figsize=(7, 0.5 * len(found) + 1))
    for row, (name, turns) in enumerate(found.items()):
        middle, digits = np.median(turns), 0 if np.median(turns) > 100 else 1
        axes.barh(row, middle, color=colors[row], alpha=0.35, height=0.6)
        axes.plot(turns, [row] * len(turns), "o", color=colors[row], ms=5)
        print(f"{name:22}{middle:5.{digits}f} {unit} ({min(turns):.{digits}f} to {max(turns):.{digits}f})")
    axes.set(yticks=range(len(found)), yticklabels=found, xlabel=unit)
    axes.set_xlim(left=min(0, *(min(turns) for turns in found.values())))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    return axes
