"""The tables of word2vec, the NCE loss on them and its gradient, merged."""

import tensorflow as tf


def make_tables(vocab_size, dim, seed):
    """The three variables of the model: embeddings [V, dim], and the weights [V, dim] and biases [V] of the contexts.

    All float32; embeddings uniform in +-0.5 / dim, the others zero, as word2vec starts them.
    """
    start = tf.random.stateless_uniform([vocab_size, dim], [seed, 0], -0.5 / dim, 0.5 / dim)
    return [tf.Variable(start), tf.Variable(tf.zeros([vocab_size, dim])), tf.Variable(tf.zeros([vocab_size]))]


def merge(slope):
    """The same gradient with every row once, its values added up. slope: tf.IndexedSlices."""
    rows, place = tf.unique(slope.indices)
    return tf.IndexedSlices(tf.math.unsorted_segment_sum(slope.values, place, tf.size(rows)), rows, slope.dense_shape)


def nce_loss(tables, centers, contexts, num_sampled=64):
    """The mean NCE loss, a float32 scalar, of a batch of pairs: centers and contexts int32 [batch].

    Negatives come from TensorFlow's log-uniform sampler, which needs ids sorted by frequency.
    Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010.
    """
    embeddings, weights, biases = tables
    losses = tf.nn.nce_loss(
        weights, biases, contexts[:, None], tf.gather(embeddings, centers), num_sampled, num_classes=len(biases)
    )
    return tf.reduce_mean(losses)
