"""The pairs of a text as a `tf.data.Dataset`: what `pair_batches` does, in TensorFlow operations."""

import tensorflow as tf

from helpers.text.skipgram import check_epoch_arguments


def pair_dataset(ids, batch_size, window, seed, keep=None, block=50_000):
    """Make a dataset of the skip-gram pairs of a text.

    Each iteration over it is one epoch with its own reaches, order and subsampling; a new dataset
    with the same `seed` (and the same `tf.random.set_seed`) goes through the same epochs again.
    Only the last, partial batch of an epoch is dropped.

    Every step is a TensorFlow operation. With `from_generator`, a process that ends while such an
    iterator is alive can hang for ever: the pipeline's thread waits for a Python interpreter that
    has shut down already.

    Parameters
    ----------
    ids : int array [n]
        The text.
    batch_size : int
    window : int
        Words to each side, at most.
    seed : int
    keep : float array [V], optional
        See `subsample`.
    block : int
        The pairs of so many words are shuffled together.

    Returns
    -------
    tf.data.Dataset
        Of (centers, contexts), both tf.int32 [batch_size].

    Raises
    ------
    ValueError
        For arguments that are not positive and for a text too short for one batch.
    """
    check_epoch_arguments(len(ids), batch_size, window, block)
    text = tf.constant(ids, tf.int32)
    chance = None if keep is None else tf.constant(keep, tf.float32)

    def epoch(seed):
        thinning, order, draws = tf.unstack(tf.random.split(seed, 3))
        words = text if chance is None else thinned(text, chance, thinning)

        def pairs_at(start):
            own_seed = tf.random.fold_in(draws, start)
            return block_pairs(words, start, block, window, own_seed)

        starts = tf.range(0, tf.size(words), block)
        starts = tf.random.experimental.stateless_shuffle(starts, order)
        return tf.data.Dataset.from_tensor_slices(starts).map(pairs_at)

    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    seeds = seeds.batch(2).take(1)
    pairs = seeds.flat_map(epoch).rebatch(batch_size, drop_remainder=True)
    return pairs.prefetch(tf.data.AUTOTUNE)


def thinned(text, chance, seed):
    """Do what `subsample` does, in TensorFlow.

    Parameters
    ----------
    text : tf.int32 [n]
    chance : tf.float32 [V]
        Of a word to stay.
    seed : tf.int32 [2]

    Returns
    -------
    tf.int32 [m]
    """
    return tf.boolean_mask(text, tf.random.stateless_uniform(tf.shape(text), seed) < tf.gather(chance, text))


def block_pairs(words, start, block, window, seed):
    """Make the pairs whose center is one of `block` words from `start` on, shuffled.

    Parameters
    ----------
    words : tf.int32 [n]
        The text.
    start : tf.int32 []
    block, window : int
    seed : tf.int32 [2]

    Returns
    -------
    centers, contexts : tf.int32 [pairs]
    """
    for_reach, for_order = tf.unstack(tf.random.split(seed, 2))
    position = tf.range(start, tf.minimum(start + block, tf.size(words)))
    reach = tf.random.stateless_uniform(tf.shape(position), for_reach, 1, window + 1, tf.int32)
    offsets = tf.constant([*range(-window, 0), *range(1, window + 1)])
    places = position[:, tf.newaxis] + offsets
    inside = (places >= 0) & (places < tf.size(words))
    legal = (tf.abs(offsets) <= reach[:, tf.newaxis]) & inside
    chosen = tf.random.experimental.stateless_shuffle(tf.where(legal), for_order)
    centers = tf.gather(position, chosen[:, 0])
    return tf.gather(words, centers), tf.gather(words, tf.gather_nd(places, chosen))
