"""The pairs of a text as a `tf.data.Dataset`: what `text.skipgram.pair_batches` does, in TensorFlow operations."""

import tensorflow as tf

from helpers.text.skipgram import check_epoch_arguments


def pair_dataset(ids, batch_size, window, seed, keep=None, block=50_000):
    """The skip-gram pairs of a text: a `tf.data.Dataset` of (centers, contexts), both tf.int32 [batch_size].

    Each iteration over it is one epoch with its own reaches, order and subsampling; a new dataset with the same
    `seed` (and the same `tf.random.set_seed`) goes through the same epochs again. The pairs of `block` words are
    shuffled together. Only the last, partial batch of an epoch is dropped. `ids` is the text, int [n]; `keep` is
    None or float [V], as for `subsample`. ValueError for arguments that are not positive and for a text too short
    for one batch.

    Every step is a TensorFlow operation. With `from_generator`, a process that ends while such an iterator is alive
    can hang for ever: the pipeline's thread waits for a Python interpreter that has shut down already.
    """
    check_epoch_arguments(len(ids), batch_size, window, block)
    text = tf.constant(ids, tf.int32)
    chance = None if keep is None else tf.constant(keep, tf.float32)

    def epoch(seed):
        thinning, order, draws = tf.unstack(tf.random.split(seed, 3))
        words = text if chance is None else thinned(text, chance, thinning)
        starts = tf.range(0, tf.size(words), block)
        starts = tf.random.experimental.stateless_shuffle(starts, order)
        blocks = tf.data.Dataset.from_tensor_slices(starts)
        return blocks.map(
            lambda start: block_pairs(words, start, block, window, tf.random.fold_in(draws, start))
        )

    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    seeds = seeds.batch(2).take(1)
    pairs = seeds.flat_map(epoch).rebatch(batch_size, drop_remainder=True)
    return pairs.prefetch(tf.data.AUTOTUNE)


def thinned(text, chance, seed):
    """`subsample` in TensorFlow: the words of `text`, tf.int32 [n], that stay by `chance`, tf.float32 [V]."""
    return tf.boolean_mask(text, tf.random.stateless_uniform(tf.shape(text), seed) < tf.gather(chance, text))


def block_pairs(words, start, block, window, seed):
    """The pairs whose center is one of `block` words from `start` on, shuffled: two tf.int32 [pairs]."""
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
