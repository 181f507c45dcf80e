"""word2vec on blocks of tokens, in matrix products, on one process or on Horovod ranks: the trainer of notebook 06.

A block is some consecutive center words. Their rows are gathered once, and so are the rows of the words around them
and of a few random words, which the block shares; one product of two matrices then gives the logit of every pair.
The idea is from Ji et al., "Parallelizing Word2Vec in Shared and Distributed Memory", 2016.
"""

import time
from dataclasses import replace

import numpy as np
import tensorflow as tf

from helpers.text.long_text import LongText
from helpers.text.skipgram import check_positive
from helpers.word2vec.blocks import BLOCKS, cut_blocks, next_blocks, noise_table, pad_text
from helpers.word2vec.replicas import due_rows, make_replicas

PIECE = 4_000  # rows of an exchange at the end, when all of them travel


def train_blocks(
    ids, vocab, *, dim=128, window=5, negatives=5, epochs=5, lr=0.045, threshold=1e-4, seed=0, report=None, hvd=None,
    blocks=BLOCKS,
):  # fmt: skip
    """Skip-gram with negative sampling: trains on a text and returns the vectors of its words, np.float32 [V, dim].

    ids: the text, int [n], as `vocab.encode` gives it, or a LongText of `encode_file`. UNK (id 0) is left out, as
    word2vec leaves out rare words; its row is random. Pairs count by their distance, see `pair_weights`. negatives:
    weight of the random words. lr: falls linearly to 0, from interval to interval. threshold: see
    `Vocab.keep_probability`.
    report(step, steps, loss, pairs_per_s): called at the start and after each interval, with the mean loss of a pair
    and its negatives, in nats, and the pairs of this rank, as many as word2vec would be expected to draw.
    hvd: on ranks, the module horovod.tensorflow; then `ids` is the shard of this rank, of any length, also 0. All
    ranks end with the same vectors. blocks: a `Blocks`, the hyper-parameters that seldom need a change.
    ValueError for ids outside the vocabulary, a text without known words, and settings that are not above 0.
    """
    check_positive(dim=dim, window=window, negatives=negatives, epochs=epochs, lr=lr)
    blocks, report = replace(blocks, window=window, negatives=negatives), report or (lambda *values: None)
    text = ids.of(vocab) if isinstance(ids, LongText) else known_words(ids, vocab)
    keep = vocab.keep_probability(threshold).astype(np.float32)
    intervals = count_intervals(len(text), hvd, blocks)
    rng = np.random.default_rng([seed, hvd.rank() if hvd else 0])
    tables, noise = block_tables(len(vocab), dim, np.random.default_rng(seed)), noise_table(vocab, rng, blocks)
    common, exchange, exchange_centers = make_replicas(tables, hvd, blocks.half)
    train = make_train(tables, highest_rates(vocab, keep, blocks), blocks)
    with exchange([0]):  # compiles
        train(cut_blocks(pad_text([], blocks), 0, 1, noise, rng, blocks), 0.0)
    exchange_all(exchange_centers, common[0], 1)
    source, steps = next_blocks(text, keep, intervals, noise, rng, blocks), epochs * intervals
    pairs, loss, begin = 0, np.nan, time.perf_counter()
    for step in range(steps):
        report(step, steps, loss, pairs / (time.perf_counter() - begin))
        words, drawn = next(source)
        with exchange(due_rows(step, len(vocab), blocks.hot)):
            loss = float(train(words, lr * (1 - step / steps)))
        pairs += drawn
    source.close()
    vectors = exchange_all(exchange_centers, common[0], len(vocab))
    report(steps, steps, loss, pairs / (time.perf_counter() - begin))
    vectors[0] = np.random.default_rng(seed).random(dim, np.float32) - 0.5
    return vectors


def exchange_all(exchange, common, size):
    """Exchange the first `size` rows, PIECE at a time, and return them. (A table read whole is copied twice.)"""
    vectors = np.empty((size, common.shape[1]), np.float32)
    for rows in np.array_split(np.arange(size), size // PIECE + 1):
        with exchange(rows):
            pass
        vectors[rows] = tf.gather(common, rows)
    return vectors


def make_train(tables, highest, blocks):
    """Compile train(words, lr) -> loss, for `words` from `cut_blocks`.

    lr: for a row it is at most its `highest`. loss: of the first step, before it. The row of id 0 must be 0 in both
    tables and `highest`, and stays so: padding has no effect.
    """
    labels, weights = pair_weights(blocks)

    def gather(words):
        centers = words[:, blocks.window : blocks.window + blocks.tokens]
        return centers, tf.gather(tables[0], centers), tf.gather(tables[1], words)

    @tf.function(input_signature=[tf.TensorSpec([None] * 3, tf.int32), tf.TensorSpec([])])
    def train(words, lr):
        centers, *rows = gather(words[0])
        loss = block_loss(*rows, labels, weights * tf.cast(centers > 0, tf.float32)[:, :, tf.newaxis])
        rates = [tf.minimum(lr, of_row) for of_row in highest]
        for step in tf.range(tf.shape(words)[0]):
            centers, *rows = gather(words[step])
            lr_of_rows = tf.gather(rates[0], centers), tf.gather(rates[1], words[step])
            change = block_changes(*rows, labels, weights, *lr_of_rows, blocks.largest_logit)
            tables[0].scatter_add(tf.IndexedSlices(change[0], centers))
            tables[1].scatter_add(tf.IndexedSlices(change[1], words[step]))
        return loss

    return train


def pair_weights(blocks):
    """What the pairs of a block should be, and how much each counts: two constants, float32.

    labels: [others], 1 for the words inside and around, 0 for the random ones. weights: [tokens, others]. word2vec
    draws for each center how far it looks, from 1..window; here each pair counts as often as it would be drawn, 1 for
    neighbours down to 1 / window, which has the same mean and no chance in it. `negatives` random words for each pair.
    """
    inside, around = np.arange(blocks.tokens)[:, np.newaxis], np.arange(-blocks.window, blocks.tokens + blocks.window)
    distance = abs(inside - around)
    near = np.where(distance == 0, 0, np.maximum(0, 1 - (distance - 1) / blocks.window))
    weight = (blocks.window + 1) * blocks.negatives / blocks.random
    labels = np.repeat([1, 0], [len(around), blocks.random])
    weights = np.pad(near, ((0, 0), (0, blocks.random)), constant_values=weight)
    return tf.constant(labels, tf.float32), tf.constant(weights, tf.float32)


def block_changes(centers, contexts, labels, weights, center_lr, context_lr, largest_logit=6.0):
    """What one step of gradient descent adds to the rows: two float32, shaped like `centers` and `contexts`.

    centers: the rows of the words inside, float32 [blocks, tokens, dim]. contexts: those of the words inside and
    around and of the random words, [blocks, others, dim]. labels: float32 [others], 1 for words of the text, 0 for
    random ones. weights: how much a pair counts, float32 [tokens, others], or so for each block. A logit beyond
    +-largest_logit changes nothing, as in gensim: else repetitive text makes rows grow without end. *_lr: the learning
    rate of each row, float32 [blocks, ...].
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    error = weights * (labels - tf.sigmoid(logits))
    error = tf.where(abs(logits) < largest_logit, error, 0.0)
    of_centers = center_lr[:, :, tf.newaxis] * error
    of_contexts = context_lr[:, tf.newaxis, :] * error
    return tf.matmul(of_centers, contexts), tf.matmul(of_contexts, centers, transpose_a=True)


def block_loss(centers, contexts, labels, weights):
    """The loss of a pair with its negatives, the mean over the pairs, in nats: a float32 scalar.

    See `block_changes`; weights: float32 [blocks, tokens, others].
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    losses = weights * tf.nn.softplus((1 - 2 * labels) * logits)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights * labels))


def highest_rates(vocab, keep, blocks):
    """The highest learning rate of each row, as center and as context: two float32 [V].

    A step adds up what all its pairs want of a row. For a row in many pairs that sum overshoots, the more the higher
    the rate; so the rates of all its pairs in a step, as many as are to be expected, may come to 1 together.
    """
    share = vocab.counts * keep
    share[0] = 0
    share, pairs = share / share.sum(), blocks.blocks * blocks.tokens * (blocks.window + 1)
    hits = pairs * np.stack([(1 + blocks.negatives) * share, share + blocks.negatives * vocab.noise()])
    rates = 1 / np.maximum(hits, 1e-9)
    rates[:, 0] = 0
    return [tf.constant(row, tf.float32) for row in rates]


def count_intervals(n, hvd, blocks=BLOCKS):
    """How many intervals an epoch of n words has: on every rank as many as the longest shard needs."""
    intervals = max(-(-n // blocks.interval), blocks.intervals) if n else 0
    if hvd:
        intervals = int(hvd.allreduce(tf.constant(intervals), op=hvd.Max))
    if not intervals:
        raise ValueError("the text has no word of the vocabulary: there is nothing to train on")
    return intervals


def block_tables(vocab_size, dim, rng):
    """The rows of words as centers, uniform in +-0.5 / dim, and as contexts, 0: two float32 variables [V, dim].

    Row 0, of UNK and padding, is 0 in both.
    """
    start = (rng.random((vocab_size, dim), np.float32) - 0.5) / dim
    start[0] = 0
    return tf.Variable(start), tf.Variable(tf.zeros([vocab_size, dim]))


def known_words(ids, vocab):
    """The ids that are not UNK: np.int32 [m], m <= n."""
    ids = np.asarray(ids, np.int32)
    if ids.size and not 0 <= ids.min() <= ids.max() < len(vocab):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}: those of this vocabulary are 0 to {len(vocab) - 1:,}")
    return ids[ids > 0]
