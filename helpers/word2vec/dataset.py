"""Training: the pairs of a text as a `tf.data.Dataset`, and the loops that learn from them."""

import tensorflow as tf

from helpers.text.skipgram import check_epoch_arguments

# ---- Pairs: what `skipgram.pair_batches` does in NumPy, as a tf.data pipeline ---------------------------------------

BLOCK = 50_000  # words whose pairs are shuffled together


def pair_dataset(ids, batch_size, window, seed, keep=None):
    """The skip-gram pairs of a text: a `tf.data.Dataset` of (centers, contexts), both tf.int32 [batch_size].

    Each iteration over it is one epoch with its own reaches, order and subsampling; a new dataset with the same
    `seed` (and the same `tf.random.set_seed`) goes through the same epochs again. Only the last, partial batch of
    an epoch is dropped. `ids` is the text, int [n]; `keep` is None or float [V], as for `skipgram.subsample`.
    ValueError for arguments that are not positive and for a text too short for one batch.

    Every step is a TensorFlow operation. With `from_generator`, a process that ends while such an iterator is alive
    can hang for ever: the pipeline's thread waits for a Python interpreter that has shut down already.
    """
    check_epoch_arguments(len(ids), batch_size, window, BLOCK)
    text = tf.constant(ids, tf.int32)
    chance = None if keep is None else tf.constant(keep, tf.float32)

    def epoch(seed):
        thinning, order, draws = tf.unstack(tf.random.split(seed, 3))
        words = text if chance is None else _subsample(text, chance, thinning)
        starts = tf.random.experimental.stateless_shuffle(tf.range(0, tf.size(words), BLOCK), order)
        blocks = tf.data.Dataset.from_tensor_slices(starts)
        return blocks.map(lambda start: _block_pairs(words, start, window, tf.random.fold_in(draws, start)))

    epoch_seed = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(2).take(1)
    return epoch_seed.flat_map(epoch).rebatch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def _subsample(text, chance, seed):
    return tf.boolean_mask(text, tf.random.stateless_uniform(tf.shape(text), seed) < tf.gather(chance, text))


def _block_pairs(words, start, window, seed):
    """The pairs whose center is one of the BLOCK words from `start` on, shuffled: two tf.int32 [pairs]."""
    for_reach, for_order = tf.unstack(tf.random.split(seed, 2))
    position = tf.range(start, tf.minimum(start + BLOCK, tf.size(words)))
    reach = tf.random.stateless_uniform(tf.shape(position), for_reach, 1, window + 1, tf.int32)
    offsets = tf.constant([*range(-window, 0), *range(1, window + 1)])
    places = position[:, tf.newaxis] + offsets
    legal = (tf.abs(offsets) <= reach[:, tf.newaxis]) & (places >= 0) & (places < tf.size(words))
    chosen = tf.random.experimental.stateless_shuffle(tf.where(legal), for_order)
    centers = tf.gather(position, chosen[:, 0])
    return tf.gather(words, centers), tf.gather(words, tf.gather_nd(places, chosen))


# ---- The canonical step: notebook 05 ---------------------------------------------------------------------------------


