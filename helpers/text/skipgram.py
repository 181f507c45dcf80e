"""From a text in ids to skip-gram pairs: a center word, and a context word within the window."""

from collections import deque

import numpy as np


def generate_batch(ids, batch_size, num_skips, skip_window, rng):
    """Make one batch of pairs from a window that slides over the text: the reference.

    It starts at a random word and slides one word at a time; after the last word of the text comes
    the first.

    Parameters
    ----------
    ids : int array [n]
        The text.
    batch_size : int
    num_skips : int
        Pairs of each center word: with distinct positions, drawn at random.
    skip_window : int
        Words to each side among which they are drawn.
    rng : numpy.random.Generator

    Returns
    -------
    centers, contexts : np.int32 [batch_size]

    Raises
    ------
    ValueError
        Unless num_skips <= 2 * skip_window, num_skips divides batch_size, n >= 2 * skip_window + 1,
        and all are positive.
    """
    check_batch_arguments(len(ids), batch_size, num_skips, skip_window)
    span = 2 * skip_window + 1
    around_center = [place for place in range(span) if place != skip_window]
    centers = np.empty(batch_size, np.int32)
    contexts = np.empty(batch_size, np.int32)
    start = int(rng.integers(len(ids)))
    buffer = deque((ids[(start + i) % len(ids)] for i in range(span)), maxlen=span)
    upcoming = start + span
    for row in range(0, batch_size, num_skips):
        places = rng.choice(around_center, num_skips, replace=False)
        centers[row : row + num_skips] = buffer[skip_window]
        contexts[row : row + num_skips] = [buffer[place] for place in places]
        buffer.append(ids[upcoming % len(ids)])  # the oldest word falls out at the other end
        upcoming += 1
    return centers, contexts


def check_batch_arguments(n, batch_size, num_skips, skip_window):
    """Raise ValueError, with the numbers, when `generate_batch` cannot make such a batch.

    Parameters
    ----------
    n : int
        Words of the text.
    batch_size, num_skips, skip_window : int
        See `generate_batch`.
    """
    check_positive(batch_size=batch_size, num_skips=num_skips, skip_window=skip_window)
    span = 2 * skip_window + 1
    if num_skips > span - 1:
        has = f"skip_window={skip_window} has only {span - 1} context words"
        raise ValueError(f"num_skips={num_skips}, but {has}")
    if batch_size % num_skips:
        raise ValueError(f"batch_size={batch_size} is not a multiple of num_skips={num_skips}")
    if n < span:
        raise ValueError(f"skip_window={skip_window} spans {span} words, but the text has only {n}")


def skipgram_pairs(ids, window, rng, shrink=True):
    """Make all skip-gram pairs of a text, grouped by their distance.

    No pair goes beyond the ends of the text.

    Parameters
    ----------
    ids : int array [n]
        The text.
    window : int
        Words to each side, at most.
    rng : numpy.random.Generator
    shrink : bool
        Each center word draws its own reach uniformly from 1..window, as word2vec does, so that
        near words count for more: a pair at distance d is made with probability
        (window - d + 1) / window. Without it, all are.

    Returns
    -------
    centers, contexts : np.int32 [pairs]

    Raises
    ------
    ValueError
        For a `window` below 1.
    """
    return pairs_within(ids, draw_reach(len(ids), window, rng, shrink))


def draw_reach(n, window, rng, shrink=True):
    """Draw how far each of `n` center words looks to both sides: np.int32 [n].

    It is 1..window, or `window` without `shrink`.
    """
    check_positive(window=window)
    if shrink:
        return rng.integers(1, window + 1, n, dtype=np.int32)
    return np.full(n, window, np.int32)


def pairs_within(ids, reach):
    """Make every pair (ids[i], ids[j]) with 0 < abs(i - j) <= reach[i].

    Parameters
    ----------
    ids : int array [n]
        The text.
    reach : int array [n]
        A word with reach 0 is nobody's center, but can be a context.

    Returns
    -------
    centers, contexts : np.int32 [pairs]
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
    """Keep each word of a text with its own probability.

    The words that are left move together, so that windows reach further, as in word2vec.

    Parameters
    ----------
    ids : int array [n]
        The text.
    keep : float64 or float32 array [V]
        As `Vocab.keep_probability()` gives it. Chance is drawn with the same precision; float32 is
        faster.
    rng : numpy.random.Generator

    Returns
    -------
    int array [m]
        The words that stay, in their order; m <= n.
    """
    return ids[rng.random(len(ids), keep.dtype) < keep[ids]]


def shard(ids, rank, size):
    """Cut out the contiguous part of a text that belongs to one rank.

    The shards are disjoint and together the whole text, and their lengths differ by at most one
    word.

    Parameters
    ----------
    ids : int array [n]
        The text.
    rank, size : int
        Which of so many ranks.

    Returns
    -------
    int array
        A view, no copy.

    Raises
    ------
    ValueError
        Unless 0 <= rank < size.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank={rank} of size={size}: ranks go from 0 to size - 1, and size is at least 1")
    return ids[len(ids) * rank // size : len(ids) * (rank + 1) // size]


def pair_batches(ids, batch_size, window, rng, keep=None, block=50_000, shrink=True):
    """Make one epoch of batches.

    The text is cut into blocks, small enough for the processor's cache. The blocks come in random
    order, the pairs of a block in random order, and the pairs left over join those of the next
    block. Every pair of the text comes once, also a pair across two blocks; only the last, partial
    batch is dropped.

    Parameters
    ----------
    ids : int array [n]
        The text.
    batch_size : int
    window : int
    rng : numpy.random.Generator
    keep : float array [V], optional
        See `subsample`.
    block : int
        Words of a block.
    shrink : bool
        See `skipgram_pairs`.

    Returns
    -------
    iterator of (centers, contexts)
        Both np.int32 [batch_size].

    Raises
    ------
    ValueError
        For arguments that are not positive and for a text too short for one batch.
    """
    check_epoch_arguments(len(ids), batch_size, window, block)
    if keep is not None:
        ids = subsample(ids, keep, rng)
    starts = rng.permutation(np.arange(0, len(ids), block))
    blocks = (pairs_of_block(ids, start, start + block, window, rng, shrink) for start in starts)
    return cut_batches(blocks, batch_size)


def pairs_of_block(ids, start, stop, window, rng, shrink=True):
    """Make all pairs whose center is in ids[start:stop], in random order: np.int32 [2, pairs].

    Contexts may lie outside.
    """
    stop = min(stop, len(ids))
    first = max(0, start - window)
    near = ids[first : stop + window]
    reach = np.zeros(len(near), np.int32)
    reach[start - first : stop - first] = draw_reach(stop - start, window, rng, shrink)
    pairs = np.stack(pairs_within(near, reach))
    return pairs[:, rng.permutation(pairs.shape[1])]


def cut_batches(blocks, batch_size):
    """Cut blocks of pairs, each np.int32 [2, pairs], into batches; what is left of one joins the next."""
    left_over = np.empty((2, 0), np.int32)
    for pairs in blocks:
        pairs = np.concatenate([left_over, pairs], axis=1)
        end = pairs.shape[1] // batch_size * batch_size
        for start in range(0, end, batch_size):
            centers, contexts = pairs[:, start : start + batch_size]
            yield centers, contexts
        left_over = pairs[:, end:]


def check_epoch_arguments(n, batch_size, window, block):
    """Raise ValueError, with the numbers, when a text of `n` words cannot give such batches.

    Parameters
    ----------
    n : int
        Words of the text.
    batch_size, window, block : int
        See `pair_batches`.
    """
    check_positive(batch_size=batch_size, window=window, block=block)
    widest = min(window, n - 1)
    most = widest * (2 * n - widest - 1)
    if most < batch_size:
        have = f"{n:,} words with {window=} give at most {most:,} pairs"
        raise ValueError(f"batch_size={batch_size:,}, but {have}")


def check_positive(**arguments):
    """Raise ValueError, with name and value, for an argument that is not above 0."""
    for name, value in arguments.items():
        if not value > 0:
            raise ValueError(f"{name}={value}, but it must be above 0")
