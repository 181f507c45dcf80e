"""The rungs of notebook 06: one training step, and ever cheaper ways of keeping replicas together.

Each make_...(tables, hvd) returns step(centers, contexts, lr) -> loss, as `helpers.word2vec.make_step` does; centers
and contexts are int32 [pairs]. tables: those of `helpers.word2vec.make_tables`. hvd: horovod.tensorflow, or None in one
process. What a step of two ranks equals, and what not, is tested in tests/test_ladder.py.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import numpy as np
import tensorflow as tf

from helpers.word2vec.model import merge
from helpers.word2vec.replicas import due_rows

PARTS, SAMPLED = 16, 64  # small steps between two exchanges; negatives of a batch
PAIRS, RATE = tf.TensorSpec([None], tf.int32), tf.TensorSpec([])  # PAIRS: also a list of rows


# ---- What all rungs share


def mean_loss(tables, centers, contexts, samples=None):
    """The mean NCE loss of a batch, as in `nce_loss`; 0 for an empty one. samples: the negatives, if given."""
    embeddings, weights, biases = tables
    rows, labels, words = tf.gather(embeddings, centers), contexts[:, None], biases.shape[0]
    losses = tf.nn.nce_loss(weights, biases, labels, rows, SAMPLED, words, sampled_values=samples)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.cast(tf.size(losses), tf.float32))


def gradients(tables, centers, contexts, samples=None):
    """(loss, [IndexedSlices of each table])."""
    with tf.GradientTape() as tape:
        loss = mean_loss(tables, centers, contexts, samples)
    return loss, tape.gradient(loss, tables)


def descend(tables, slopes, lr):
    """One step of gradient descent, in place."""
    for table, slope in zip(tables, slopes):
        if isinstance(slope, tf.IndexedSlices):
            table.scatter_sub(tf.IndexedSlices(lr * slope.values, slope.indices))
        else:
            table.assign_sub(lr * slope)


# ---- An exchange of gradients in every step


def make_taped(tables, hvd=None, **options):
    """Horovod's own tape; options: sparse_as_dense, compression."""

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        with tf.GradientTape() as tape:
            loss = mean_loss(tables, centers, contexts)
        if hvd:
            tape = hvd.DistributedGradientTape(tape, **options)
        descend(tables, tape.gradient(loss, tables), lr)
        return loss

    return step


def make_halved(tables, hvd=None):
    """Whole tables of gradients, sent as float16."""
    return make_taped(tables, hvd, sparse_as_dense=True, **({"compression": hvd.Compression.fp16} if hvd else {}))


def make_merged(tables, hvd=None):
    """Duplicate rows are added up before they are sent."""

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        loss, slopes = gradients(tables, centers, contexts)
        if hvd:
            slopes = [hvd.allreduce(merge(slope)) for slope in slopes]
        descend(tables, slopes, lr)
        return loss

    return step


def pack(slopes, words):
    """The gradients of all three tables as one float32 matrix [rows, 1 + dim + 1]: row number, values, bias."""
    inside, around, biases = slopes
    values = [tf.pad(inside.values, [[0, 0], [0, 1]]), tf.concat([around.values, biases.values[:, None]], 1)]
    rows = [tf.cast(inside.indices, tf.int32), tf.cast(around.indices, tf.int32) + words]
    merged = merge(tf.IndexedSlices(tf.concat(values, 0), tf.concat(rows, 0)))
    return tf.concat([tf.bitcast(merged.indices, tf.float32)[:, None], merged.values], 1)


def unpack(packed, words):
    """What `pack` packed: three IndexedSlices."""
    rows, values = tf.bitcast(packed[:, 0], tf.int32), packed[:, 1:]
    inside = rows < words
    first, second = tf.boolean_mask(values, inside), tf.boolean_mask(values, ~inside)
    centers, contexts = tf.boolean_mask(rows, inside), tf.boolean_mask(rows, ~inside) - words
    slices = (first[:, :-1], centers), (second[:, :-1], contexts), (second[:, -1], contexts)
    return [tf.IndexedSlices(*some) for some in slices]


def make_fused(tables, hvd=None, parts=1):
    """One message a step. With `parts`, gradient accumulation: that many smaller batches before it is sent."""
    words = tables[2].shape[0]

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        labels = tf.cast(contexts[:, None], tf.int64)
        samples, expected, others = tf.random.log_uniform_candidate_sampler(labels, 1, SAMPLED, True, words)
        batches = zip(*[tf.split(array, parts) for array in (centers, contexts, expected)])
        losses, slopes = zip(*[gradients(tables, x, y, (samples, true, others)) for x, y, true in batches])
        slopes = [
            tf.IndexedSlices(tf.concat([s.values for s in some], 0) / parts, tf.concat([s.indices for s in some], 0))
            for some in zip(*slopes)
        ]
        if hvd:
            gathered = unpack(hvd.allgather(pack(slopes, words)), words)
            slopes = [tf.IndexedSlices(slope.values / hvd.size(), slope.indices) for slope in gathered]
        descend(tables, slopes, lr)
        return tf.reduce_mean(losses)

    return step


# ---- Several steps of one's own, then an exchange of what has changed


def several(tables, centers, contexts, lr):
    """PARTS steps, one after the other; returns the loss of the last."""
    centers, contexts = tf.reshape(centers, [PARTS, -1]), tf.reshape(contexts, [PARTS, -1])

    def small_step(part, _):
        loss, slopes = gradients(tables, centers[part], contexts[part])
        descend(tables, slopes, lr)
        return part + 1, loss

    return tf.while_loop(lambda part, _: part < PARTS, small_step, [0, 0.0])[1]


def side_by_side(tables, rows):
    """Some rows of all tables as one matrix [rows, dim + dim + 1]."""
    return tf.concat([tf.gather(table, rows) for table in tables[:2]] + [tf.gather(tables[2], rows)[:, None]], 1)


def add(tables, rows, change):
    dim = tables[0].shape[1]
    for table, part in zip(tables, tf.split(change, [dim, dim, 1], 1)):
        table.scatter_add(tf.IndexedSlices(tf.reshape(part, [-1, *table.shape[1:]]), rows))


def all_rows(exchange, words):
    return np.arange(words, dtype=np.int32)


def make_deltas(tables, hvd=None, due=all_rows):
    """After each step the changes of the rows `due` are summed over the ranks and added to what all had before."""
    common, done, words = [tf.Variable(table) for table in tables], count(), tables[2].shape[0]

    @tf.function(input_signature=[PAIRS, PAIRS, RATE, PAIRS])
    def train(centers, contexts, lr, rows):
        loss = several(tables, centers, contexts, lr)
        if hvd:
            add(common, rows, hvd.allreduce(side_by_side(tables, rows) - side_by_side(common, rows), op=hvd.Sum))
            for table, shared in zip(tables, common):
                table.scatter_update(tf.IndexedSlices(tf.gather(shared, rows), rows))
        return loss

    def step(centers, contexts, lr, rows=None):
        return train(centers, contexts, lr, due(next(done), words) if rows is None else rows)

    return step


def make_changed(tables, hvd=None):
    """After each step the rows that changed are gathered from all ranks, with their numbers."""
    common, every = [tf.Variable(table) for table in tables], tf.range(tables[2].shape[0])

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        loss = several(tables, centers, contexts, lr)
        if hvd:
            change = side_by_side(tables, every) - side_by_side(common, every)
            rows = tf.cast(tf.where(tf.reduce_any(change != 0, 1))[:, 0], tf.int32)
            numbered = tf.concat([tf.bitcast(rows, tf.float32)[:, None], tf.gather(change, rows)], 1)
            gathered = hvd.allgather(numbered)
            rows = tf.bitcast(gathered[:, 0], tf.int32)
            add(common, rows, gathered[:, 1:])
            for table, shared in zip(tables, common):
                table.scatter_update(tf.IndexedSlices(tf.gather(shared, rows), rows))
        return loss

    return step


def make_overlapped(tables, hvd=None):
    """The changes made until now travel while the next steps are computed; hot rows often, cold rows seldom.

    They travel in a second thread: in one tf.function with the steps, they would wait until these are computed.
    """
    common, done, words = [tf.Variable(table) for table in tables], count(), tables[2].shape[0]
    thread, matrix = ThreadPoolExecutor(1), tf.TensorSpec([None, None])

    @tf.function(input_signature=[PAIRS])
    def changed(rows):
        return side_by_side(tables, rows) - side_by_side(common, rows)

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def train(centers, contexts, lr):
        return several(tables, centers, contexts, lr)

    @tf.function(input_signature=[PAIRS, matrix, matrix])
    def arrive(rows, mine, everyone):
        add(common, rows, everyone)
        add(tables, rows, everyone - mine)

    def step(centers, contexts, lr, rows=None):
        rows = due_rows(next(done), words) if rows is None else rows
        mine = changed(rows)
        travel = thread.submit(partial(hvd.allreduce, op=hvd.Sum, name="changes") if hvd else tf.identity, mine)
        loss = train(centers, contexts, lr)
        arrive(rows, mine, travel.result())
        return loss

    return step
