"""word2vec on blocks of tokens, in matrix products, on one process or on Horovod ranks: the trainer of notebook 06.

A block is TOKENS consecutive center words. Their rows are gathered once, and so are the rows of the words around them
and of RANDOM random words, which the block shares; one product of two matrices then gives the logit of every pair.
The idea is from Ji et al., "Parallelizing Word2Vec in Shared and Distributed Memory", 2016.
"""

import time
from contextlib import nullcontext
from functools import partial

import numpy as np
import tensorflow as tf

from helpers.text.skipgram import subsample
from helpers.word2vec.replicas import due_rows, make_exchange, merge_changes

TOKENS, BLOCKS, RANDOM = 16, 32, 22  # center words of a block, blocks of a step, random words of a block
INTERVAL = 200_000  # words that a rank trains between two exchanges, or less: an epoch has at least
INTERVALS = 10  # of them, also on a short text
HOT = 250  # so many rows are exchanged each time, rarer words more seldom
NOISE = 50_000  # the random words of so many blocks are drawn beforehand
LARGEST_LOGIT = 6.0


def train_blocks(
    ids, vocab, *, dim=128, window=5, negatives=5, epochs=5, lr=0.045, threshold=1e-4, seed=0, report=None, hvd=None
):
    """Skip-gram with negative sampling: trains on a text and returns the vectors of its words, np.float32 [V, dim].

    ids: the text, int [n], as `vocab.encode` gives it. UNK (id 0) is left out, as word2vec leaves out rare words; its
    row is random. Pairs count by their distance, see `pair_weights`. negatives: weight of the random words. lr: falls
    linearly to 0, from interval to interval. threshold: see `Vocab.keep_probability`.
    report(step, steps, loss, pairs_per_s): called at the start and after each interval, with the mean loss of a pair
    and its negatives, in nats, and the pairs of this rank, as many as word2vec would be expected to draw.
    hvd: on ranks, the module horovod.tensorflow; then `ids` is the shard of this rank, of any length, also 0. All
    ranks end with the same vectors.
    ValueError for ids outside the vocabulary, a text without known words, and settings that are not above 0.
    """
    check_settings(dim=dim, window=window, negatives=negatives, epochs=epochs, lr=lr)
    text, keep = known_words(ids, vocab), vocab.keep_probability(threshold).astype(np.float32)
    tables = make_tables(len(vocab), dim, np.random.default_rng(seed))
    common = [tf.Variable(table) for table in tables] if hvd else tables
    exchange = exchange_centers = nullcontext
    if hvd:
        allreduce = partial(hvd.allreduce, op=hvd.Sum, name="changes")
        exchange = make_exchange(tables, common, allreduce, merge_changes)
        exchange_centers = make_exchange(tables[:1], common[:1], allreduce, merge_changes)
    train = make_train(tables, highest_rates(vocab, keep, window, negatives), window, negatives)
    rng = np.random.default_rng([seed, hvd.rank() if hvd else 0])
    noise = noise_table(vocab, rng)
    intervals = count_intervals(len(text), hvd)
    steps, pairs, loss = epochs * intervals, 0, np.nan
    with exchange([0]):  # compiles, and so does exchange_centers
        train(cut_blocks(pad_text([], window), 0, 1, window, noise, rng), 0.0)
    with exchange_centers([0]):
        pass
    begin = time.perf_counter()
    for step in range(steps):
        if report:
            report(step, steps, loss, pairs / (time.perf_counter() - begin))
        if step % intervals == 0:
            kept = [subsample(part, keep, rng) for part in np.array_split(text, intervals)]
            kept = np.concatenate(kept)
            padded = pad_text(kept, window)
        words = cut_blocks(padded, step % intervals, intervals, window, noise, rng)
        with exchange(due_rows(step, len(vocab))):
            loss = float(train(words, lr * (1 - step / steps)))
        pairs += (window + 1) * len(kept) / intervals
    for rows in np.array_split(np.arange(len(vocab)), len(vocab) // 16_000 + 1):
        with exchange_centers(rows):
            pass
    if report:
        report(steps, steps, loss, pairs / (time.perf_counter() - begin))
    vectors = common[0].numpy()
    vectors[0] = np.random.default_rng(seed).random(dim, np.float32) - 0.5
    return vectors


def deal(ids, size, piece=1_000):
    """A text in `size` shards, a list of int arrays: its pieces of so many words are dealt out like cards.

    Halves of a text are about different things, and ranks that read about different things drift apart between two
    exchanges. Dealt shards are alike, also in how many words subsampling keeps: no rank has to wait for the others.
    """
    owner = np.arange(len(ids)) // piece % size
    return [ids[owner == rank] for rank in range(size)]


def make_train(tables, highest, window, negatives):
    """Compile train(words, lr) -> loss, for `words` from `cut_blocks`.

    lr: for a row it is at most its `highest`. loss: of the first step, before it. The row of id 0 must be 0 in both
    tables and `highest`, and stays so: padding has no effect.
    """
    labels, weights = pair_weights(window, negatives)

    def gather(words):
        centers = words[:, window : window + TOKENS]
        return centers, tf.gather(tables[0], centers), tf.gather(tables[1], words)

    @tf.function(input_signature=[tf.TensorSpec([None] * 3, tf.int32), tf.TensorSpec([])])
    def train(words, lr):
        centers, *rows = gather(words[0])
        loss = mean_loss(*rows, labels, weights * tf.cast(centers > 0, tf.float32)[:, :, tf.newaxis])
        rates = [tf.minimum(lr, of_row) for of_row in highest]
        for step in tf.range(tf.shape(words)[0]):
            centers, *rows = gather(words[step])
            change = changes(*rows, labels, weights, tf.gather(rates[0], centers), tf.gather(rates[1], words[step]))
            tables[0].scatter_add(tf.IndexedSlices(change[0], centers))
            tables[1].scatter_add(tf.IndexedSlices(change[1], words[step]))
        return loss

    return train


def pair_weights(window, negatives):
    """What the pairs of a block should be, and how much each counts: two constants, float32.

    labels: [others], 1 for the words inside and around, 0 for the random ones. weights: [TOKENS, others]. word2vec
    draws for each center how far it looks, from 1..window; here each pair counts as often as it would be drawn, 1 for
    neighbours down to 1 / window, which has the same mean and no chance in it. `negatives` random words for each pair.
    """
    inside, around = np.arange(TOKENS)[:, np.newaxis], np.arange(-window, TOKENS + window)
    distance = abs(inside - around)
    near = np.where(distance == 0, 0, np.maximum(0, 1 - (distance - 1) / window))
    random = np.full((TOKENS, RANDOM), (window + 1) * negatives / RANDOM)
    labels = np.repeat([1, 0], [len(around), RANDOM])
    return tf.constant(labels, tf.float32), tf.constant(np.concatenate([near, random], axis=1), tf.float32)


def changes(centers, contexts, labels, weights, center_rates, context_rates):
    """What one step of gradient descent adds to the rows: two float32, shaped like `centers` and `contexts`.

    centers: the rows of the words inside, float32 [blocks, TOKENS, dim]. contexts: those of the words inside and
    around and of the random words, [blocks, others, dim]. labels: float32 [others], 1 for words of the text, 0 for
    random ones. weights: how much a pair counts, float32 [TOKENS, others], or so for each block. A logit beyond +-6
    changes nothing, as in gensim: else repetitive text makes rows grow without end. *_rates: of each row, float32
    [blocks, ...].
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    error = weights * (labels - tf.sigmoid(logits))
    error = tf.where(abs(logits) < LARGEST_LOGIT, error, 0.0)
    return (
        tf.matmul(center_rates[:, :, tf.newaxis] * error, contexts),
        tf.matmul(context_rates[:, tf.newaxis, :] * error, centers, transpose_a=True),
    )


def mean_loss(centers, contexts, labels, weights):
    """The loss of a pair with its negatives, the mean over the pairs, in nats: a float32 scalar.

    See `changes`; weights: float32 [blocks, TOKENS, others].
    """
    logits = tf.matmul(centers, contexts, transpose_b=True)
    losses = weights * tf.nn.softplus((1 - 2 * labels) * logits)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights * labels))


def highest_rates(vocab, keep, window, negatives):
    """The highest learning rate of each row, as center and as context: two float32 [V].

    A step adds up what all its pairs want of a row. For a row in many pairs that sum overshoots, the more the higher
    the rate; so the rates of all its pairs in a step, as many as are to be expected, may come to 1 together.
    """
    share = vocab.counts * keep
    share[0] = 0
    share, noise = share / share.sum(), vocab.noise()
    pairs = BLOCKS * TOKENS * (window + 1)
    hits = pairs * (1 + negatives) * share, pairs * (share + negatives * noise)
    rates = [1 / np.maximum(row, 1e-9) for row in hits]
    for row in rates:
        row[0] = 0
    return [tf.constant(row, tf.float32) for row in rates]


def count_intervals(n, hvd):
    """How many intervals an epoch of n words has: on every rank as many as the longest shard needs."""
    intervals = max(-(-n // INTERVAL), INTERVALS) if n else 0
    if hvd:
        intervals = int(hvd.allreduce(tf.constant(intervals), op=hvd.Max))
    if not intervals:
        raise ValueError("the text has no word of the vocabulary: there is nothing to train on")
    return intervals


def pad_text(text, window):
    """A text with id 0 around it, so far that it is cut into whole blocks: int32 [window + n + window]."""
    n = max(1, -(-len(text) // TOKENS)) * TOKENS
    return np.pad(np.asarray(text, np.int32), (window, window + n - len(text)))


def cut_blocks(padded, part, parts, window, noise, rng):
    """One of `parts` equal parts of a text as blocks, with their random words, for `make_train`.

    padded: from `pad_text`. Returns int32 [steps, BLOCKS, window + TOKENS + window + RANDOM]; the last step is filled
    up with id 0. The blocks of one step come from places far apart, so that few words are in it twice. The random
    words of a block are a row of `noise`, see `noise_table`.
    """
    near = np.lib.stride_tricks.sliding_window_view(padded, TOKENS + 2 * window)[::TOKENS]
    near = near[len(near) * part // parts : len(near) * (part + 1) // parts]
    steps = max(1, -(-len(near) // BLOCKS))
    near = np.pad(near, ((0, steps * BLOCKS - len(near)), (0, 0)))
    words = np.empty((steps, BLOCKS, TOKENS + 2 * window + RANDOM), np.int32)
    of_block = words.swapaxes(0, 1)
    of_block[:, :, :-RANDOM] = near.reshape(BLOCKS, steps, -1)
    of_block[:, :, -RANDOM:] = noise[rng.integers(len(noise), size=(BLOCKS, steps))]
    return words


def make_tables(vocab_size, dim, rng):
    """The rows of words as centers, uniform in +-0.5 / dim, and as contexts, 0: two float32 variables [V, dim].

    Row 0, of UNK and padding, is 0 in both.
    """
    start = (rng.random((vocab_size, dim), np.float32) - 0.5) / dim
    start[0] = 0
    return tf.Variable(start), tf.Variable(tf.zeros([vocab_size, dim]))


def noise_table(vocab, rng):
    """Random words for so many blocks, np.int32 [NOISE, RANDOM]; no UNK.

    All words, each as often as its count ** 0.75 asks for, stand in order and are cut into RANDOM equal parts; a row
    has one word of each part. So each block has frequent and rare words as it should, and not by chance.
    """
    edges = np.cumsum(vocab.noise()[1:])
    places = (np.arange(RANDOM * NOISE) + 0.5) / (RANDOM * NOISE)
    words = 1 + np.searchsorted(edges, places * edges[-1]).astype(np.int32)
    return np.ascontiguousarray(rng.permuted(words.reshape(RANDOM, NOISE), axis=1).T)


def known_words(ids, vocab):
    """The ids that are not UNK: np.int32 [m], m <= n."""
    ids = np.asarray(ids, np.int32)
    if ids.size and not 0 <= ids.min() <= ids.max() < len(vocab):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}: those of this vocabulary are 0 to {len(vocab) - 1:,}")
    return ids[ids > 0]


def check_settings(**settings):
    for name, value in settings.items():
        if not value > 0:
            raise ValueError(f"{name}={value}, but it must be above 0")
