"""Strategies that lesson 12 does not tell, only its table shows: as those of lesson_parts.strategies.

`ALL` has every strategy by name, `planned` the cost of each, `read` the text for all of them.
"""

from functools import cache, partial

import tensorflow as tf

from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec.model import merge
from lesson_parts.plans import PLANS, ROW, distinct, kept_shares, rows_of_all_pairs, whole_tables
from lesson_parts.strategies import (
    BATCH,
    LOCAL_STEPS,
    PAIRS,
    RATE,
    SAMPLED,
    STRATEGIES,
    Strategy,
    add_rows,
    apply_gradients,
    batch_gradients,
    make_taped,
    side_by_side,
    small_steps,
)


@cache
def read(corpus, size, words):
    """(ids, vocab): the first `words` words of a corpus, np.int32, and the vocabulary of its `size` most frequent."""
    text = load_corpus(corpus, progress=False).words
    vocab = Vocab.build(text, size)
    return vocab.encode(text[:words]), vocab


def make_halved(tables, hvd=None):
    """Whole tables of gradients, sent as float16."""
    return make_taped(tables, hvd, sparse_as_dense=True, **({"compression": hvd.Compression.fp16} if hvd else {}))


def pack(gradients, words):
    """The gradients of all three tables as one float32 matrix [rows, 1 + dim + 1]: row number, values, bias.

    An allgather only copies, so the 32 bits of an integer travel safely as those of a float.
    """
    inside, around, biases = gradients
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


def accumulated(tables, centers, contexts, parts):
    """(loss, gradients of each table) of a batch with one set of negatives, computed in `parts` smaller batches."""
    labels = tf.cast(contexts[:, None], tf.int64)
    sampler = tf.random.log_uniform_candidate_sampler(labels, 1, SAMPLED, True, tables[2].shape[0])
    samples, expected_of_labels, expected_of_samples = sampler
    batches = zip(*[tf.split(array, parts) for array in (centers, contexts, expected_of_labels)])
    found = [batch_gradients(tables, x, y, (samples, labels, expected_of_samples)) for x, y, labels in batches]
    losses, gradients = zip(*found)
    return tf.reduce_mean(losses), [
        tf.IndexedSlices(tf.concat([g.values for g in some], 0) / parts, tf.concat([g.indices for g in some], 0))
        for some in zip(*gradients)
    ]


def make_fused(tables, hvd=None, parts=1):
    """One message a step. With `parts`, gradient accumulation: that many smaller batches before it is sent."""
    words = tables[2].shape[0]

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        loss, gradients = accumulated(tables, centers, contexts, parts)
        if hvd:
            gathered = unpack(hvd.allgather(pack(gradients, words)), words)
            gradients = [tf.IndexedSlices(gradient.values / hvd.size(), gradient.indices) for gradient in gathered]
        apply_gradients(tables, gradients, lr)
        return loss

    return step


def make_changed(tables, hvd=None, n=LOCAL_STEPS):
    """Local SGD; after n steps the rows that changed are gathered from all ranks, with their numbers."""
    common, every = [tf.Variable(table) for table in tables], tf.range(tables[2].shape[0])

    @tf.function(input_signature=[PAIRS, PAIRS, RATE])
    def step(centers, contexts, lr):
        loss = small_steps(tables, centers, contexts, lr, n)
        if hvd:
            change = side_by_side(tables, every) - side_by_side(common, every)
            rows = tf.cast(tf.where(tf.reduce_any(change != 0, 1))[:, 0], tf.int32)
            numbered = tf.concat([tf.bitcast(rows, tf.float32)[:, None], tf.gather(change, rows)], 1)
            gathered = hvd.allgather(numbered)
            rows = tf.bitcast(gathered[:, 0], tf.int32)
            add_rows(common, rows, gathered[:, 1:])
            for table, shared in zip(tables, common):
                table.scatter_update(tf.IndexedSlices(tf.gather(shared, rows), rows))
        return loss

    return step


MORE = {
    "bigger batch, windows": Strategy(make_taped, source="windows"),
    "dense, float16": Strategy(make_halved),
    "one message": Strategy(make_fused),
    "accumulation": Strategy(partial(make_fused, parts=4), 4 * BATCH),
    "changed rows": Strategy(make_changed, LOCAL_STEPS * BATCH, local=True),
}
ALL = STRATEGIES | MORE


def half_tables(pairs, ids, vocab, size):
    """Of a dense step, with numbers of two bytes."""
    pairs, messages, sent = whole_tables(pairs, ids, vocab, size, messages=3)
    return pairs, messages, sent / 2


def packed_rows(pairs, ids, vocab, size):
    """Each row of a batch once, with its number, in one message."""
    share = kept_shares(vocab)
    rows = distinct(pairs, share) + distinct(pairs, share, SAMPLED)
    return pairs, 1, (size - 1) * rows * (ROW + 8)


def rows_changed(pairs, ids, vocab, size):
    """Each row, of all tables side by side, that one of the small steps has changed."""
    rows = distinct(2 * pairs, kept_shares(vocab), LOCAL_STEPS * SAMPLED)
    return pairs, 1, (size - 1) * rows * (2 * ROW + 8)


MORE_PLANS = {
    "bigger batch, windows": rows_of_all_pairs,
    "dense, float16": half_tables,
    "one message": packed_rows,
    "accumulation": packed_rows,
    "changed rows": rows_changed,
}


def planned(name, ids, vocab, size=2):
    """`lesson_parts.plans.planned` for all strategies: (pairs, messages, bytes) of a rank in a step."""
    return (PLANS | MORE_PLANS)[name](ALL[name].batch, ids, vocab, size)
