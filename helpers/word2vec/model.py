"""The tables of word2vec, the NCE loss on them, a step of training, rows of a gradient merged."""

import tensorflow as tf


def make_tables(vocab_size, dim, seed):
    """Make the three variables of the model, as word2vec starts them.

    Parameters
    ----------
    vocab_size : int
    dim : int
    seed : int

    Returns
    -------
    list of three float32 variables
        Embeddings [V, dim], uniform in +-0.5 / dim; weights [V, dim] and biases [V] of the
        contexts, zero.
    """
    start = tf.random.stateless_uniform([vocab_size, dim], [seed, 0], -0.5 / dim, 0.5 / dim)
    return [tf.Variable(start), tf.Variable(tf.zeros([vocab_size, dim])), tf.Variable(tf.zeros([vocab_size]))]


def merge(gradient):
    """Add up the values of rows that come several times in a gradient.

    Parameters
    ----------
    gradient : tf.IndexedSlices

    Returns
    -------
    tf.IndexedSlices
        The same gradient with every row once.
    """
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def nce_loss(tables, centers, contexts, num_sampled=64):
    """Compute the mean NCE loss of a batch of pairs (Gutmann and Hyvarinen, 2010).

    Negatives come from TensorFlow's log-uniform sampler, which needs ids sorted by frequency.

    Parameters
    ----------
    tables : list of three variables
        See `make_tables`.
    centers, contexts : int32 tensor [batch]
    num_sampled : int
        Negatives, which the batch shares.

    Returns
    -------
    float32 tensor []
    """
    embeddings, weights, biases = tables
    losses = tf.nn.nce_loss(
        weights,
        biases,
        contexts[:, None],
        tf.gather(embeddings, centers),
        num_sampled,
        num_classes=biases.shape[0],
    )
    return tf.reduce_mean(losses)


def make_step(tables, num_sampled=64, hvd=None):
    """Compile a step of gradient descent on the NCE loss.

    Parameters
    ----------
    tables : list of three variables
        See `make_tables`.
    num_sampled : int
        See `nce_loss`.
    hvd : module, optional
        horovod.tensorflow, on ranks: its DistributedGradientTape averages the gradients.

    Returns
    -------
    function
        step(centers, contexts, lr) -> loss, a float32 scalar; centers and contexts are int32
        [batch], any batch size.
    """
    pairs, rate = tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.float32)

    @tf.function(input_signature=[pairs, pairs, rate])
    def step(centers, contexts, lr):
        with tf.GradientTape() as tape:
            loss = nce_loss(tables, centers, contexts, num_sampled)
        if hvd:
            tape = hvd.DistributedGradientTape(tape)
        for table, gradient in zip(tables, tape.gradient(loss, tables)):
            table.scatter_sub(tf.IndexedSlices(lr * gradient.values, gradient.indices))
        return loss

    return step
