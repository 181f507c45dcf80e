"""The tables of word2vec and their start, the NCE loss on them, a step of training, rows of a gradient merged."""

import numpy as np
import tensorflow as tf

LOSS_NAMES = ("full_softmax", "sampled_softmax", "nce", "sgns")
SAMPLER_NAMES = ("log_uniform", "uniform", "unigram")
POWER = 0.75  # of the counts, in word2vec's noise


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


def frequency_biases(name, counts, num_sampled=64, sampler="unigram"):
    """Compute biases with which a loss starts as if it knew how frequent each word is.

    The logits of the softmaxes and of NCE tend to log p(context | center), so their biases start at
    log p(context). Those of SGNS tend to the same minus the log of the expected count of a sample.

    Parameters
    ----------
    name : str
        One of LOSS_NAMES.
    counts : int or float array [V]
        How often each word is a context; 0 counts as 1.
    num_sampled : int
        Negatives of a batch, all different; only SGNS starts by it.
    sampler : str
        How they are drawn, see `probabilities`; only SGNS starts by it.

    Returns
    -------
    np.float32 [V]

    Raises
    ------
    ValueError
        For an unknown name.
    """
    check_name("loss", name, LOSS_NAMES)
    counts = np.maximum(counts, 1)
    biases = np.log(counts / counts.sum())
    if name == "sgns":
        biases -= np.log(np.minimum(1, num_sampled * probabilities(sampler, counts)))
    return biases.astype(np.float32)


def probabilities(sampler, counts):
    """Return how likely one draw of the sampler is each word.

    Parameters
    ----------
    sampler : str
        One of SAMPLER_NAMES:

        - "log_uniform": id k with probability log((k + 2) / (k + 1)) / log(V + 1), near Zipf's law
          in sorted ids;
        - "uniform": every id alike;
        - "unigram": in proportion to counts ** 0.75, the noise of word2vec.
    counts : int array [V]
        Of the words in the corpus.

    Returns
    -------
    np.float64 [V]
        It sums to 1.

    Raises
    ------
    ValueError
        For an unknown sampler.
    """
    check_name("sampler", sampler, SAMPLER_NAMES)
    ids = np.arange(len(counts))
    if sampler == "log_uniform":
        weights = np.log((ids + 2) / (ids + 1))
    else:
        weights = np.asarray(counts, np.float64) ** (POWER if sampler == "unigram" else 0)
    return weights / weights.sum()


def check_name(kind, name, known):
    """Raise ValueError, with the names that there are, for another one."""
    if name not in known:
        raise ValueError(f"There is no {kind} {name!r}: choose one of {', '.join(known)}.")


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
