"""The strategies of lesson 12: one training step, and ever cheaper ways of keeping replicas together.

Each make_...(tables, hvd) takes the variables of `helpers.word2vec.make_tables`, and
horovod.tensorflow, or None in one process. It returns step(centers, contexts, lr) -> loss, as
`helpers.word2vec.make_step` does; centers and contexts are int32 [pairs]. What a step of two ranks
equals, and what not, is tested in tests/test_strategies.py.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, repeat
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from helpers.exchange.merging import due_rows
from helpers.text.skipgram import generate_batch, pair_batches
from helpers.word2vec.block_trainer import train_blocks
from helpers.word2vec.model import make_tables, merge

DIM = 128
WINDOW = 5
BATCH = 2048  # pairs
SAMPLED = 64  # negatives of a batch
LOCAL_STEPS = 16  # small steps of a rank between two exchanges
PAIRS = tf.TensorSpec([None], tf.int32)  # also a list of rows
RATE = tf.TensorSpec([])


# ---- What all strategies share


def batch_loss(tables, centers, contexts, samples=None):
    """Compute the mean NCE loss of a batch, as `nce_loss` does; 0 for an empty one.

    Parameters
    ----------
    tables : list of three variables
    centers, contexts : int32 tensor [pairs]
    samples : tuple, optional
        The negatives, as the `sampled_values` of tf.nn.nce_loss; without it they are drawn.

    Returns
    -------
    float32 tensor []
    """
    embeddings, weights, biases = tables
    rows, labels = tf.gather(embeddings, centers), contexts[:, None]
    words = biases.shape[0]
    losses = tf.nn.nce_loss(weights, biases, labels, rows, SAMPLED, words, sampled_values=samples)
    n = tf.cast(tf.size(losses), tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), n)


def batch_gradients(tables, centers, contexts, samples=None):
    """Compute the loss of a batch and its gradients, a tf.IndexedSlices for each table."""
    with tf.GradientTape() as tape:
        loss = batch_loss(tables, centers, contexts, samples)
    return loss, tape.gradient(loss, tables)


def apply_gradients(tables, gradients, lr):
    """Do one step of gradient descent, in place; gradients may be dense or tf.IndexedSlices."""
    for table, gradient in zip(tables, gradients):
        if isinstance(gradient, tf.IndexedSlices):
            values = lr * gradient.values
            table.scatter_sub(tf.IndexedSlices(values, gradient.indices))
        else:
            table.assign_sub(lr * gradient)


# ---- An exchange of gradients in every step


def make_taped(tables, hvd=None, **options):
    """Exchange by Horovod's own tape; options: sparse_as_dense, compression."""

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        with tf.GradientTape() as tape:
            loss = batch_loss(tables, centers, contexts)
        if hvd:
            tape = hvd.DistributedGradientTape(tape, **options)
        apply_gradients(tables, tape.gradient(loss, tables), lr)
        return loss

    return step


def make_deduplicated(tables, hvd=None):
    """Add up rows that come several times in a batch before they are sent."""

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        loss, gradients = batch_gradients(tables, centers, contexts)
        if hvd:
            gradients = [hvd.allreduce(merge(g)) for g in gradients]
        apply_gradients(tables, gradients, lr)
        return loss

    return step


# ---- Local SGD: several steps of a rank's own, then an exchange of what has changed


def small_steps(tables, centers, contexts, lr, n):
    """Do n small steps, one after the other, on equal parts of the pairs; return the last loss."""
    centers = tf.reshape(centers, [n, -1])
    contexts = tf.reshape(contexts, [n, -1])

    def small_step(i, _):
        loss, gradients = batch_gradients(tables, centers[i], contexts[i])
        apply_gradients(tables, gradients, lr)
        return i + 1, loss

    return tf.while_loop(lambda i, _: i < n, small_step, [0, 0.0])[1]


def side_by_side(tables, rows):
    """Gather some rows of all tables as one matrix [rows, dim + dim + 1]."""
    parts = [tf.gather(table, rows) for table in tables[:2]]
    return tf.concat(parts + [tf.gather(tables[2], rows)[:, None]], 1)


def add_rows(tables, rows, change):
    """Add a matrix of `side_by_side` to these rows."""
    dim = tables[0].shape[1]
    for table, part in zip(tables, tf.split(change, [dim, dim, 1], 1)):
        part = tf.reshape(part, [-1, *table.shape[1:]])
        table.scatter_add(tf.IndexedSlices(part, rows))


def all_rows(step, size):
    """Exchange the whole table at each step; see `due_rows`."""
    return np.arange(size, dtype=np.int32)


def make_local_sgd(tables, hvd=None, due=all_rows, n=LOCAL_STEPS):
    """Sum the changes of the rows that are due over the ranks, after n small steps.

    due(step, size) gives the rows, see `due_rows`; step(..., rows=...) exchanges these instead.
    """
    common = [tf.Variable(table) for table in tables]
    done = count()  # gives 0, 1, 2, ...: exchanges until now
    words = tables[2].shape[0]

    @tf.function(input_signature=[PAIRS, PAIRS, RATE, PAIRS])
    def train(centers, contexts, lr, rows):
        loss = small_steps(tables, centers, contexts, lr, n)
        if hvd:
            own = side_by_side(tables, rows) - side_by_side(common, rows)
            add_rows(common, rows, hvd.allreduce(own, op=hvd.Sum))
            for table, shared in zip(tables, common):
                values = tf.gather(shared, rows)
                table.scatter_update(tf.IndexedSlices(values, rows))
        return loss

    def step(centers, contexts, lr, rows=None):
        rows = due(next(done), words) if rows is None else rows
        return train(centers, contexts, lr, rows)

    return step


def make_overlapped(tables, hvd=None, due=due_rows, n=LOCAL_STEPS):
    """Let the changes made until now travel while the next n steps are computed.

    They travel in a second thread: in one tf.function with the steps, they would wait until these
    are computed.
    """
    common = [tf.Variable(table) for table in tables]
    done = count()  # gives 0, 1, 2, ...: exchanges until now
    words = tables[2].shape[0]
    matrix = tf.TensorSpec([None, None])
    thread = ThreadPoolExecutor(1)
    travel = tf.identity
    if hvd:
        travel = partial(hvd.allreduce, op=hvd.Sum, name="changes")

    @tf.function(input_signature=[PAIRS])
    def changed(rows):
        return side_by_side(tables, rows) - side_by_side(common, rows)

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def train(centers, contexts, lr):
        return small_steps(tables, centers, contexts, lr, n)

    @tf.function(input_signature=[PAIRS, matrix, matrix])
    def arrive(rows, own, total):
        add_rows(common, rows, total)
        add_rows(tables, rows, total - own)

    def step(centers, contexts, lr, rows=None):
        rows = due(next(done), words) if rows is None else rows
        own = changed(rows)
        total = thread.submit(travel, own)
        loss = train(centers, contexts, lr)
        arrive(rows, own, total.result())
        return loss

    return step


# ---- By name


class Strategy(NamedTuple):
    """A way of training on ranks.

    Attributes
    ----------
    make : function
        See the head of this file; of blocks it is `train_blocks`.
    batch : int
        Pairs of a step, or their mean.
    local : bool
        A step is LOCAL_STEPS small ones, then changes are summed.
    late : bool
        At the end, some rows still have to be exchanged.
    source : str
        Where batches come from: "windows" is `generate_batch`, "article" the same with batches of
        64 to 128 pairs in place of `batch`, "pairs" `pair_batches`, and "words" the text itself,
        for blocks.
    """

    make: object
    batch: int = BATCH
    local: bool = False
    late: bool = False
    source: str = "pairs"


STRATEGIES = {
    "canonical": Strategy(make_taped, 96, source="article"),
    "bigger batch": Strategy(make_taped),
    "dense": Strategy(partial(make_taped, sparse_as_dense=True)),
    "deduplicated rows": Strategy(make_deduplicated),
    "local SGD": Strategy(make_local_sgd, LOCAL_STEPS * BATCH, local=True),
    "hot and cold": Strategy(
        partial(make_local_sgd, due=due_rows), LOCAL_STEPS * BATCH, local=True, late=True
    ),
    "overlap": Strategy(make_overlapped, LOCAL_STEPS * BATCH, local=True, late=True),
    "blocks": Strategy(train_blocks, source="words"),
}


def pairs_of(ids, vocab):
    """Compute how many pairs an epoch of `pair_batches` is expected to have.

    Parameters
    ----------
    ids : int array [n]
        The text.
    vocab : Vocab

    Returns
    -------
    float
    """
    return float(vocab.keep_probability()[ids].sum() * (WINDOW + 1))


# ---- What they train on: the start of their tables, and batches


def start_tables(vocab, dim=DIM, seed=0):
    """Make tables with biases at the log of the words' shares, known from the counts alone.

    Parameters
    ----------
    vocab : Vocab
    dim : int
    seed : int

    Returns
    -------
    list of three float32 variables
        See `make_tables`.
    """
    tables = make_tables(len(vocab), dim, seed)
    tables[2].assign(np.log((vocab.counts + 1) / vocab.counts.sum()))
    return tables


def batches(strategy, ids, vocab, rng):
    """Make batches for ever.

    Only the source "pairs" drops frequent words, as `Vocab.keep_probability` says.

    Parameters
    ----------
    strategy : Strategy
    ids : int array [n]
        The text of this rank.
    vocab : Vocab
    rng : numpy.random.Generator

    Returns
    -------
    iterator of (centers, contexts)
        np.int32 [pairs] each; empty where the text has no pair.
    """
    if strategy.source in ("windows", "article") and len(ids) > 2 * WINDOW:
        return window_batches(ids, strategy.batch, rng, random_size=strategy.source == "article")
    if len(ids) * WINDOW >= strategy.batch:
        return epoch_batches(ids, strategy.batch, rng, vocab.keep_probability())
    return repeat(no_pairs())


def window_batches(ids, size, rng, random_size):
    """Make batches of `generate_batch`; with random_size they have 64 to 128 pairs, as in the article."""
    while True:
        if random_size:
            size = 2 * int(rng.integers(32, 65))
        yield generate_batch(ids, size, 2, WINDOW, rng)


def epoch_batches(ids, size, rng, keep):
    """Make the batches of one epoch after the other; an epoch that has none gives an empty one."""
    while True:
        found = False
        for batch in pair_batches(ids, size, WINDOW, rng, keep):
            found = True
            yield batch
        if not found:
            yield no_pairs()


def no_pairs():
    """Make an empty batch."""
    return np.empty((2, 0), np.int32)
