"""Four losses of skip-gram on the same tables: full softmax, sampled softmax, NCE and negative sampling (SGNS).

The same functions as in notebook 03. Each takes tables = (embeddings [V, dim], weights [V, dim], biases [V]), all of
one float dtype, and a batch of pairs, centers and contexts, both int32 [batch]. Each returns the mean loss of a pair,
a scalar of the dtype of the tables. All but the full softmax also take `samples`, the negatives that the whole batch
shares; see `helpers.word2vec.draw_samples`.
"""

import tensorflow as tf


def full_softmax(tables, centers, contexts):
    """Minus the log probability of the context among all V words: V logits for each pair."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    logits = tf.matmul(rows, weights, transpose_b=True) + biases
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def sampled_logits(tables, centers, contexts, samples):
    """The logits of the true contexts, [batch], and of the samples, [batch, num_sampled]."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    sampled = tf.matmul(rows, tf.gather(weights, samples.ids), transpose_b=True)
    return true, sampled + tf.gather(biases, samples.ids)


def corrected_logits(tables, centers, contexts, samples):
    """The same minus the log of the expected counts, so that words drawn often do not count for more."""
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    true -= tf.cast(samples.log_expected_true, true.dtype)
    return true, sampled - tf.cast(samples.log_expected, true.dtype)


def sampled_softmax(tables, centers, contexts, samples):
    """Minus the log probability of the context among itself and the samples.

    A sample that is the true context is left out, as in `tf.nn.sampled_softmax_loss`.
    Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation", 2015.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    hits = contexts[:, None] == samples.ids
    sampled = tf.where(hits, sampled.dtype.min, sampled)
    logits = tf.concat([true[:, None], sampled], axis=1)
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def nce(tables, centers, contexts, samples):
    """True against sampled, one yes-or-no question each, with logits that know how likely noise is.

    Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


def sgns(tables, centers, contexts, samples):
    """Negative sampling: the questions of NCE, with the logits as they are.

    Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", 2013. Theirs draws
    negatives for each pair by itself and has no biases; here the batch shares them, and biases of 0 give theirs.
    """
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


LOSSES = {"full_softmax": full_softmax, "sampled_softmax": sampled_softmax, "nce": nce, "sgns": sgns}
