"""The harness of lesson 19, and the byte count and turns of 18: its table on servers, calls of an exchange, homes."""

import math
import time
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import psutil
import tensorflow as tf

from helpers.cluster.sharded_tables import bundle, lookup, make_table, shards
from helpers.plots import SERIAL, gantt
from helpers.word2vec.model import merge

STEPS = 20  # of a bundle
CALLS = "Horovod"  # how the names of its operations begin
COMPUTES, WAITS = "computes", "waits"  # what a rank does in a step beside its calls
PARTS = {
    COMPUTES: SERIAL,
    WAITS: "#dddddd",
    "ids": "#332288",  # not the colours of ranks
    "rows": "#44AA99",
    "gradients": "#882255",
    "dense layers": "#AA7799",
}

# ---- Homes without ranks


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


def _numbers(part, parts):
    """Batch numbers part, part + parts, ... as a dataset for `bundle`."""
    return tf.data.Dataset.range(10**9).shard(parts, part).map(lambda number: (number,))


def home_in_process(make_top, batch_of, rows, dim, parts=1):
    """Put the table into this process; returns run(bundles), which trains STEPS steps each and returns seconds.

    It takes the servers' step. A step is on `parts` batches together: numbers 0 and 1, then 2 and 3, ...
    """

    def together(number, rows):
        found = [batch_of(parts * number + part, rows) for part in range(parts)]
        return [tf.concat(column, 0) for column in zip(*found)]

    steps = bundle(_step_on(tf.distribute.get_strategy(), make_top, together, rows, dim), STEPS)
    batches = iter(_numbers(0, 1))

    def run(bundles):
        began = time.perf_counter()
        for _ in range(bundles):
            steps(batches).numpy()
        return time.perf_counter() - began

    run(1)  # compiles
    return run


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


def collectives(steps):
    """The Horovod calls in the graph of a tf.function of an int32: {name of the operation: how many}."""
    graph = steps.get_concrete_function(tf.constant(0)).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return dict(sorted(Counter(node.op for node in nodes if node.op.startswith(CALLS)).items()))


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


def take_turns(ways, turns=5):
    """Call all functions of {name: function} in turns, each turn from another one on: {name: list of results}."""
    found, names = {name: [] for name in ways}, [*ways]
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(ways[name]())
    return found


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


# ---- One step of several ranks


def spans_of_step(marks):
    """What each rank did when in a step: a call begins when the last rank has come to it, and before that a rank waits.

    Parameters
    ----------
    marks : list of list of (str, float)
        Of each rank its marks, of one clock, in seconds: the first is the step's beginning, each other one has the name
        of what ends there, "computes" or that of a call.

    Returns
    -------
    list of list of (str, float, float)
        Of each rank (what, begin, end), as `helpers.plots.gantt` takes them.
    """
    spans = [[] for _ in marks]
    for number in range(1, len(marks[0])):
        what = marks[0][number][0]
        last = max(rank[number - 1][1] for rank in marks)
        for rank, own in enumerate(marks):
            begin, end = own[number - 1][1], own[number][1]
            if what == COMPUTES:
                spans[rank].append((what, begin, end))
            else:
                spans[rank] += [(WAITS, begin, last), (what, last, end)]
    return spans


def ms_of(spans, what):
    """The milliseconds that a rank spends with this in a step, on average of the ranks; see `spans_of_step`."""
    return 1e3 * sum(end - begin for rank in spans for name, begin, end in rank if name == what) / len(spans)


def draw_step(spans):
    """Draw what `spans_of_step` found as a Gantt chart, with the names of the calls above it. Returns the axes."""
    _, axes = plt.subplots(figsize=(6.5, 2.6))
    gantt(axes, spans, PARTS, legend=False)
    zero = min(rank[0][1] for rank in spans)
    calls = [span for span in spans[0] if span[0] not in (COMPUTES, WAITS)]
    for number, (what, begin, end) in enumerate(calls):
        middle, height = 1e3 * ((begin + end) / 2 - zero), -0.55 - 0.3 * (number % 2)
        axes.text(middle, height, what, color=PARTS[what], ha="center", va="center")
    axes.set_ylim(len(spans) - 0.5, -1.1)
    axes.set_xlabel("ms (dark grey: computes, light grey: waits for the other rank)")
    return axes
