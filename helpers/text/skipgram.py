"""From a text in ids to skip-gram pairs: a center word, and a context word at most `window` positions away from it."""

from collections import deque

import numpy as np


def generate_batch(ids, batch_size, num_skips, skip_window, rng):
    """One batch of pairs from a window that slides over the text, starting at a random word: the reference.

    Each center word gives `num_skips` pairs, with distinct positions among the `skip_window` words on each of
    its sides, drawn at random. After the last word of the text comes the first. The window slides one word at a time.

    `ids` is the text, int [n]; `rng` an np.random.Generator. Returns (centers, contexts), both np.int32 [batch_size].
    ValueError unless num_skips <= 2 * skip_window, num_skips divides batch_size, n >= 2 * skip_window + 1, and all
    are positive.
    """
    check_batch_arguments(len(ids), batch_size, num_skips, skip_window)
    span = 2 * skip_window + 1
    around_center = [place for place in range(span) if place != skip_window]
    centers = np.empty(batch_size, np.int32)
    contexts = np.empty(batch_size, np.int32)
    start = int(rng.integers(len(ids)))
    window = deque((ids[(start + i) % len(ids)] for i in range(span)), maxlen=span)
    upcoming = start + span
    for row in range(0, batch_size, num_skips):
        places = rng.choice(around_center, num_skips, replace=False)
        centers[row : row + num_skips] = window[skip_window]
        contexts[row : row + num_skips] = [window[place] for place in places]
        window.append(ids[upcoming % len(ids)])  # the oldest word falls out at the other end
        upcoming += 1
    return centers, contexts


def check_batch_arguments(n, batch_size, num_skips, skip_window):
    """ValueError, with the numbers, when `generate_batch` cannot make such a batch from a text of `n` words."""
    check_positive(batch_size=batch_size, num_skips=num_skips, skip_window=skip_window)
    span = 2 * skip_window + 1
    if num_skips > span - 1:
        raise ValueError(f"num_skips={num_skips}, but skip_window={skip_window} has only {span - 1} context words")
    if batch_size % num_skips:
        raise ValueError(f"batch_size={batch_size} is not a multiple of num_skips={num_skips}")
    if n < span:
        raise ValueError(f"skip_window={skip_window} spans {span} words, but the text has only {n}")


def skipgram_pairs(ids, window, rng, shrink=True):
    """All skip-gram pairs of a text, grouped by their distance; no pair goes beyond the ends of the text.

    `shrink`: each center word draws its own reach uniformly from 1..window, as word2vec does, so that near words
    count for more: a pair at distance d is made with probability (window - d + 1) / window. Without it, all are.

    `ids` is the text, int [n]; `rng` an np.random.Generator. Returns (centers, contexts), both np.int32 [pairs].
    ValueError for a `window` below 1.
    """
    return pairs_within(ids, draw_reach(len(ids), window, rng, shrink))


def draw_reach(n, window, rng, shrink=True):
    """How far each of `n` center words looks to both sides: np.int32 [n], 1..window, or `window` without `shrink`."""
    check_positive(window=window)
    if shrink:
        return rng.integers(1, window + 1, n, dtype=np.int32)
    return np.full(n, window, np.int32)


def pairs_within(ids, reach):
    """Every pair (ids[i], ids[j]) with 0 < |i - j| <= reach[i]: (centers, contexts), both np.int32 [pairs].

    `ids` and `reach` are int [n]; a word with reach 0 is nobody's center, but can be a context.
    """
    ids, reach = np.asarray(ids, np.int32), np.asarray(reach, np.int32)
    centers, contexts = [], []
    for distance in range(1, reach.max(initial=1) + 1):
        left, right = ids[:-distance], ids[distance:]
        from_left = reach[:-distance] >= distance
        from_right = reach[distance:] >= distance
        centers += [left[from_left], right[from_right]]
        contexts += [right[from_left], left[from_right]]
    return np.concatenate(centers), np.concatenate(contexts)


def subsample(ids, keep, rng):
    """The words that stay when each word is kept with its own probability, in their order: int [m], m <= n.

    `ids` is the text, int [n]; `keep` float64 [V] as `Vocab.keep_probability()` gives it, or float32, which is faster:
    chance is drawn with the same precision. The words that are left move together, so that windows reach further, as in
    word2vec.
    """
    return ids[rng.random(len(ids), keep.dtype) < keep[ids]]


def shard(ids, rank, size):
    """The part of a text that belongs to `rank`, one of `size` ranks: contiguous, a view, no copy.

    The shards are disjoint and together the whole text, and their lengths differ by at most one word.
    ValueError unless 0 <= rank < size.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank={rank} of size={size}: ranks go from 0 to size - 1, and size is at least 1")
    return ids[len(ids) * rank // size : len(ids) * (rank + 1) // size]


def pair_batches(ids, batch_size, window, rng, keep=None, block=50_000, shrink=True):
    """One epoch of batches: an iterator of (centers, contexts), both np.int32 [batch_size].

    The text is cut into blocks of `block` words, small enough for the processor's cache. The blocks come in random
    order, the pairs of a block in random order, and the pairs left over join those of the next block. Every pair of
    the text comes once, also a pair across two blocks; only the last, partial batch is dropped.

    `keep` is None or float [V], see `subsample`; the rest is as for `skipgram_pairs`. ValueError for arguments that
    are not positive and for a text too short for one batch.
    """
    check_epoch_arguments(len(ids), batch_size, window, block)
    if keep is not None:
        ids = subsample(ids, keep, rng)
    starts = rng.permutation(np.arange(0, len(ids), block))
    blocks = (pairs_of_block(ids, start, start + block, window, rng, shrink) for start in starts)
    return cut_batches(blocks, batch_size)


def pairs_of_block(ids, start, stop, window, rng, shrink=True):
    """All pairs whose center is in ids[start:stop], in random order; contexts may lie outside. np.int32 [2, pairs]."""
    stop = min(stop, len(ids))
    first = max(0, start - window)
    near = ids[first : stop + window]
    reach = np.zeros(len(near), np.int32)
    reach[start - first : stop - first] = draw_reach(stop - start, window, rng, shrink)
    pairs = np.stack(pairs_within(near, reach))
    return pairs[:, rng.permutation(pairs.shape[1])]


def cut_batches(blocks, batch_size):
    """Batches of pairs from blocks of pairs, each np.int32 [2, pairs]; what is left of one joins the next."""
    left_over = np.empty((2, 0), np.int32)
    for pairs in blocks:
        pairs = np.concatenate([left_over, pairs], axis=1)
        batches, left_over = np.split(pairs, [pairs.shape[1] // batch_size * batch_size], axis=1)
        yield from zip(*batches.reshape(2, -1, batch_size), strict=True)


def check_epoch_arguments(n, batch_size, window, block):
    """ValueError, with the numbers, when a text of `n` words cannot give an epoch of such batches."""
    check_positive(batch_size=batch_size, window=window, block=block)
    widest = min(window, n - 1)
    most = widest * (2 * n - widest - 1)
    if most < batch_size:
        raise ValueError(f"batch_size={batch_size:,}, but {n:,} words with {window=} give at most {most:,} pairs")


def check_positive(**arguments):
    """ValueError, with name and value, for an argument that is not above 0."""
    for name, value in arguments.items():
        if not value > 0:
            raise ValueError(f"{name}={value}, but it must be above 0")
