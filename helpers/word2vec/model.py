"""The tables of word2vec, the NCE loss on them and its gradient with each row once."""

import tensorflow as tf


def make_tables(vocab_size, dim, seed):
    """The three variables of the model: embeddings [V, dim], and the weights [V, dim] and biases [V] of the contexts.

    All float32; embeddings uniform in +-0.5 / dim, the others zero, as word2vec starts them.
    """
    start = tf.random.stateless_uniform([vocab_size, dim], [seed, 0], -0.5 / dim, 0.5 / dim)
    return [tf.Variable(start), tf.Variable(tf.zeros([vocab_size, dim])), tf.Variable(tf.zeros([vocab_size]))]


def merge(gradient):
    """The same gradient with every row once, its values added up. gradient: tf.IndexedSlices."""
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def nce_loss(tables, centers, contexts, num_sampled=64):
    """The mean NCE loss, a float32 scalar, of a batch of pairs: centers and contexts int32 [batch].

    Negatives come from TensorFlow's log-uniform sampler, which needs ids sorted by frequency.
    Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010.
    """
    embeddings, weights, biases = tables
    losses = tf.nn.nce_loss(
        weights, biases, contexts[:, None], tf.gather(embeddings, centers), num_sampled, num_classes=biases.shape[0]
    )
    return tf.reduce_mean(losses)


def make_step(tables, distribute=None, num_sampled=64):
    """A compiled step of gradient descent on the NCE loss: step(centers, contexts, lr) -> loss, a float32 scalar.

    tables: the variables of `make_tables`. centers, contexts: int32 [batch], any batch size.
    distribute: what wraps the tape, `hvd.DistributedGradientTape` on ranks; None in one process.
    """

    pairs, rate = tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.float32)

    @tf.function(input_signature=[pairs, pairs, rate])
    def step(centers, contexts, lr):
        with tf.GradientTape() as tape:
            loss = nce_loss(tables, centers, contexts, num_sampled)
        tape = distribute(tape) if distribute else tape
        for table, gradient in zip(tables, tape.gradient(loss, tables)):
            table.scatter_sub(tf.IndexedSlices(lr * gradient.values, gradient.indices))
        return loss

    return step
