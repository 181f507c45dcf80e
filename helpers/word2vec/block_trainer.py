"""The fast trainer of lesson 13: word2vec on blocks of tokens, in one process or on Horovod ranks.

A block is some consecutive center words. Their rows are gathered once, and so are the rows of the
words around them and of a few random words, which the block shares; one product of two matrices
then gives the logit of every pair. The idea is from Ji et al., "Parallelizing Word2Vec in Shared
and Distributed Memory", 2016.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import tensorflow as tf

from helpers.exchange.merging import due_rows, make_exchange, make_replicas, merge_changes
from helpers.text.skipgram import check_positive
from helpers.word2vec.array_replicas import make_array_exchange
from helpers.word2vec.blocks import BLOCKS, count_known, cut_blocks, next_blocks, noise_table, pad_text
from helpers.word2vec.kernel import tile_weights, train_words

PIECE = 4_000  # rows of an exchange at the end, when all of them travel


# ---- One step


def block_changes(centers, contexts, labels, weights, center_lr, context_lr, largest_logit=6.0):
    """Compute what one step of gradient descent adds to the rows.

    A logit beyond +-largest_logit changes nothing, as in gensim: else repetitive text makes rows
    grow without end.

    Parameters
    ----------
    centers : float32 tensor [blocks, tokens, dim]
        The rows of the words inside.
    contexts : float32 tensor [blocks, others, dim]
        The rows of the words inside and around, and of the random words.
    labels : float32 tensor [others]
        1 for words of the text, 0 for random ones.
    weights : float32 tensor [tokens, others] or [blocks, tokens, others]
        How much a pair counts.
    center_lr, context_lr : float32 tensor [blocks, tokens], [blocks, others]
        The learning rate of each row.
    largest_logit : float

    Returns
    -------
    tuple of two float32 tensors
        Shaped like `centers` and `contexts`.
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    error = weights * (labels - tf.sigmoid(logits))
    error = tf.where(abs(logits) < largest_logit, error, 0.0)
    of_centers = center_lr[:, :, tf.newaxis] * error
    of_contexts = context_lr[:, tf.newaxis, :] * error
    return tf.matmul(of_centers, contexts), tf.matmul(of_contexts, centers, transpose_a=True)


def block_loss(centers, contexts, labels, weights):
    """Compute the loss of a pair with its negatives, the mean over the pairs, in nats.

    Parameters
    ----------
    centers, contexts, labels
        See `block_changes`.
    weights : float32 tensor [blocks, tokens, others]

    Returns
    -------
    float32 tensor []
        0 where there is no pair.
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    losses = weights * tf.nn.softplus((1 - 2 * labels) * logits)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights * labels))


def pair_weights(blocks):
    """Make what the pairs of a block should be, and how much each counts.

    word2vec draws for each center how far it looks, from 1..window; here each pair counts as often
    as it would be drawn, 1 for neighbours down to 1 / window, which has the same mean and no chance
    in it. There are `negatives` random words for each pair.

    Returns
    -------
    labels : float32 tensor [others]
        1 for the words inside and around, 0 for the random ones.
    weights : float32 tensor [tokens, others]
    """
    inside = np.arange(blocks.tokens)[:, np.newaxis]
    around = np.arange(-blocks.window, blocks.tokens + blocks.window)
    distance = abs(inside - around)
    near = np.maximum(0, 1 - (distance - 1) / blocks.window)
    near = np.where(distance == 0, 0, near)
    of_random = (blocks.window + 1) * blocks.negatives / blocks.random
    labels = np.repeat([1, 0], [len(around), blocks.random])
    weights = np.pad(near, ((0, 0), (0, blocks.random)), constant_values=of_random)
    return tf.constant(labels, tf.float32), tf.constant(weights, tf.float32)


def highest_rates(vocab, keep, blocks):
    """Compute the highest learning rate of each row, as center and as context: two float32 [V].

    A step adds up what all its pairs want of a row. For a row in many pairs that sum overshoots,
    the more the higher the rate; so the rates of all its pairs in a step, as many as are to be
    expected, may come to 1 together.
    """
    share = vocab.counts * keep
    share[0] = 0
    share = share / share.sum()
    pairs = blocks.blocks * blocks.tokens * (blocks.window + 1)
    as_center = (1 + blocks.negatives) * share
    as_context = share + blocks.negatives * vocab.noise()
    rates = 1 / np.maximum(pairs * np.stack([as_center, as_context]), 1e-9)
    rates[:, 0] = 0
    return [tf.constant(row, tf.float32) for row in rates]


def make_train(tables, highest, blocks, block_changes=block_changes):
    """Compile train(words, lr) -> loss, for `words` from `cut_blocks`.

    The row of id 0 must be 0 in both tables and in `highest`, and stays so: padding has no effect.

    Parameters
    ----------
    tables : list of two float32 variables [V, dim]
    highest : list of two float32 tensors [V]
        The highest learning rate of each row, see `highest_rates`.
    blocks : Blocks
    block_changes : function
        In place of `block_changes`.

    Returns
    -------
    function
        It trains all steps of `words`; the loss is that of the first one, before it.
    """
    labels, weights = pair_weights(blocks)

    def gather(words):
        centers = words[:, blocks.window : blocks.window + blocks.tokens]
        return centers, tf.gather(tables[0], centers), tf.gather(tables[1], words)

    @tf.function(input_signature=[tf.TensorSpec([None] * 3, tf.int32), tf.TensorSpec([])])
    def train(words, lr):
        centers, *rows = gather(words[0])
        known = tf.cast(centers > 0, tf.float32)[:, :, tf.newaxis]
        loss = block_loss(*rows, labels, weights * known)
        rates = [tf.minimum(lr, of_row) for of_row in highest]
        for step in tf.range(tf.shape(words)[0]):
            centers, *rows = gather(words[step])
            center_lr = tf.gather(rates[0], centers)
            context_lr = tf.gather(rates[1], words[step])
            of_centers, of_contexts = block_changes(
                *rows, labels, weights, center_lr, context_lr, blocks.largest_logit
            )
            tables[0].scatter_add(tf.IndexedSlices(of_centers, centers))
            tables[1].scatter_add(tf.IndexedSlices(of_contexts, words[step]))
        return loss

    return train


def make_kernel_train(tables, highest, blocks, threads=1):
    """Make train(words, lr) -> loss as `make_train` does, with the compiled loop of kernel.py.

    It trains block after block, so each sees what the ones before it have changed. By that the
    bounds of one block would do in place of those of a step; the scores are the same or a little
    lower (SimLex-999 0.230 in place of 0.240, English text, two seeds). With those of a step a
    frequent word moves less between two exchanges, and as many threads as a step has blocks may
    start from the same rows.

    Parameters
    ----------
    tables : list of two float32 arrays [V, dim]
        They are trained in place.
    highest : list of two float32 tensors [V]
    blocks : Blocks
    threads : int
        So many train different blocks at the same time, without locks (Hogwild, Niu et al., 2011).
        Now and then one overwrites what another has just added: with one thread a run can be
        repeated to the last bit, with more it cannot.

    Returns
    -------
    function
    """
    labels, weights = pair_weights(blocks)
    tiles = tile_weights(weights, blocks)
    rates = [np.array(of_row) for of_row in highest]
    pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def first_loss(words):
        centers = words[:, blocks.window : blocks.window + blocks.tokens]
        known = (centers > 0)[:, :, np.newaxis].astype(np.float32)
        return block_loss(tables[0][centers], tables[1][words], labels, weights * known)

    def train_part(words, lr):
        train_words(*tables, *rates, words, tiles, blocks.window, blocks.random, lr, blocks.largest_logit)

    def train(words, lr):
        loss = first_loss(words[0])
        one_after_the_other = words.reshape(-1, words.shape[-1])
        if pool:
            parts = np.array_split(one_after_the_other, threads)
            list(pool.map(train_part, parts, [lr] * threads))
        else:
            train_part(one_after_the_other, lr)
        return loss

    return train


# ---- All of them


def block_tables(vocab_size, dim, seed):
    """Make the rows of words as centers, uniform in +-0.5 / dim, and as contexts, 0.

    Returns
    -------
    tuple of two float32 arrays [V, dim]
        Row 0, of UNK and padding, is 0 in both.
    """
    start = (np.random.default_rng(seed).random((vocab_size, dim), np.float32) - 0.5) / dim
    start[0] = 0
    return start, np.zeros_like(start)


def count_intervals(n, blocks=BLOCKS, hvd=None):
    """Count the intervals of an epoch: on every rank as many as the longest shard needs.

    Parameters
    ----------
    n : int
        Words of this rank that are not UNK.
    blocks : Blocks
    hvd : module, optional
        horovod.tensorflow, on ranks.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When no rank has a word.
    """
    intervals = max(-(-n // blocks.interval), blocks.intervals) if n else 0
    if hvd:
        intervals = int(hvd.allreduce(tf.constant(intervals), op=hvd.Max))
    if not intervals:
        raise ValueError("the text has no word of the vocabulary: there is nothing to train on")
    return intervals


def exchange_all(exchange, common):
    """Exchange all rows, PIECE at a time, and return them: np.float32 [V, dim].

    (A table that is read whole is copied twice.)
    """
    vectors = np.empty(common.shape, np.float32)
    for rows in np.array_split(np.arange(len(vectors)), len(vectors) // PIECE + 1):
        with exchange(rows):
            pass
        vectors[rows] = common[rows] if isinstance(common, np.ndarray) else tf.gather(common, rows)
    return vectors


def no_report(step, steps, loss, pairs_per_s):
    """Say nothing."""


def linear_fall(step, steps):
    """Let the learning rate fall to 0 in `steps` equal stairs: its share at one of them, from 0 on."""
    return 1 - step / steps


def from_start(tables, common, steps):
    """Begin with the first interval."""
    return 0


def no_watch(part, steps=0):
    """Measure nothing."""
    return nullcontext()


def train_blocks(
    ids, vocab, *, dim=128, window=5, negatives=5, epochs=5, lr=0.045, threshold=1e-4, seed=0,
    report=None, watch=None, start=from_start, fall=linear_fall,
    block_changes=None, merge_changes=merge_changes, due_rows=due_rows,
    blocks=BLOCKS, threads=1, hvd=None,
):
    """Train skip-gram with negative sampling on a text.

    The compiled loop of kernel.py trains, unless `block_changes` says what a step adds: then it is
    TensorFlow's graph, see `make_train`.

    UNK (id 0) is left out, as word2vec leaves out rare words; its row is random. Pairs count by
    their distance, see `pair_weights`.

    Parameters
    ----------
    ids : sequence of n integers
        The text, as `vocab.encode` gives it, or anything else with a length that gives an array
        for a slice, like np.memmap: it is read a part at a time. On ranks the shard of this rank,
        of any length, also 0.
    vocab : Vocab
    dim : int
    window : int
        Words to each side of a center.
    negatives : float
        Weight of the random words, in random words for each pair.
    epochs : int
    lr : float
        The learning rate at the start; it falls linearly to 0, from interval to interval, unless
        `fall` says otherwise.
    threshold : float
        See `Vocab.keep_probability`.
    seed : int
    report : function, optional
        report(step, steps, loss, pairs_per_s) is called at the start and after each interval, with
        the mean loss of a pair and its negatives, in nats, and the pairs of this rank, as many as
        word2vec would be expected to draw.
    watch : function, optional
        watch(part, steps) gives a context manager in which a part of the work is done: "cutting
        blocks", an "exchange" and inside it the "training" of so many steps, the "last exchange".
        For those who measure. "compiling" comes before the first report.
    start : function
        start(tables, common, steps) is called before training, with the tables and the number of
        intervals in all epochs, and returns the interval to begin with. For those who keep
        checkpoints: between two intervals, in `report`, the tables of all ranks and the number
        of the interval are the whole state. Here they can be given the values that they had;
        `common` has the same on all ranks (in one process it is `tables`).
    fall : function, optional
        fall(step, steps) gives the share of `lr` at which an interval of all epochs is trained.
    block_changes : function, optional
        What a step adds, in place of the compiled loop: `block_changes` of this file, or another.
    merge_changes, due_rows : function
        In place of the trainer's own: how the changes of ranks become one, and which rows travel
        when.
    blocks : Blocks
        The hyper-parameters that seldom need a change.
    threads : int
        Of the compiled loop, see `make_kernel_train`; the graph has TensorFlow's threads.
    hvd : module, optional
        horovod.tensorflow, on ranks. All ranks end with the same vectors.

    Returns
    -------
    np.float32 [V, dim]
        The vectors of the words.

    Raises
    ------
    ValueError
        For ids outside the vocabulary, a text without known words, and settings that are not
        above 0.
    """
    check_positive(dim=dim, window=window, negatives=negatives, epochs=epochs, lr=lr, threads=threads)
    blocks = replace(blocks, window=window, negatives=negatives)
    report = report or no_report
    watch = watch or no_watch
    keep = vocab.keep_probability(threshold).astype(np.float32)
    intervals = count_intervals(count_known(ids, vocab), blocks, hvd)
    own_seed = [seed, hvd.rank() if hvd else 0]
    rng = np.random.default_rng(own_seed)
    noise = noise_table(vocab, rng, blocks)
    tables = block_tables(len(vocab), dim, seed)
    if block_changes:
        tables = [tf.Variable(table) for table in tables]
        replicas = make_replicas(tables, make_exchange, merge_changes, hvd)
        train = make_train(tables, highest_rates(vocab, keep, blocks), blocks, block_changes)
    else:
        replicas = make_replicas(tables, make_array_exchange, merge_changes, hvd)
        train = make_kernel_train(tables, highest_rates(vocab, keep, blocks), blocks, threads)
    common, exchange, exchange_centers = replicas
    with watch("compiling"), exchange([0]):
        train(cut_blocks(pad_text([], blocks), 0, 1, noise, rng, blocks), 0.0)
    with exchange_centers([0]):
        pass
    steps = epochs * intervals
    first = start(tables, common, steps)
    source = next_blocks(ids, keep, intervals, noise, own_seed, blocks, first)
    pairs, loss, begin = 0, np.nan, time.perf_counter()
    for step in range(first, steps):
        report(step, steps, loss, pairs / (time.perf_counter() - begin))
        with watch("cutting blocks"):
            words, drawn = next(source)
        rows = due_rows(step, len(vocab), blocks.hot)
        with watch("exchange"), exchange(rows), watch("training", len(words)):
            loss = float(train(words, lr * fall(step, steps)))
        pairs += drawn
    with watch("last exchange"):
        vectors = exchange_all(exchange_centers, common[0])
    report(steps, steps, loss, pairs / (time.perf_counter() - begin))
    vectors[0] = np.random.default_rng(seed).random(dim, np.float32) - 0.5
    return vectors
