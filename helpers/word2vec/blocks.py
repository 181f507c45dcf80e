"""A text cut into blocks of tokens with their random words, and the hyper-parameters of both."""

from dataclasses import dataclass
from itertools import count

import numpy as np

from helpers.text.skipgram import subsample

ROW = 1_000  # words that stand together in a shard of `interleave`
READ_AT_ONCE = 1 << 22  # ids that `count_known` reads at a time


@dataclass(frozen=True)
class Blocks:
    """The hyper-parameters of the block trainer that seldom need a change.

    Attributes
    ----------
    tokens : int
        Center words of a block.
    blocks : int
        Blocks of a step.
    random : int
        Random words of a block.
    interval : int
        Words that a rank trains between two exchanges, at most.
    intervals : int
        Exchanges of an epoch, at least, also on a short text.
    at_once : int
        Intervals of the text that are in memory.
    hot : int
        Rows that travel in each exchange, see `due_rows`.
    noise : int
        The random words of so many blocks are drawn beforehand.
    largest_logit : float
        See `block_changes`.
    window, negatives
        Arguments of `train_blocks`, which puts them here.
    """

    tokens: int = 16
    blocks: int = 32
    random: int = 22
    interval: int = 200_000
    intervals: int = 10
    at_once: int = 10
    hot: int = 250
    noise: int = 50_000
    largest_logit: float = 6.0
    window: int = 5
    negatives: float = 5


BLOCKS = Blocks()


def interleave(ids, size, piece=ROW):
    """Cut a text into shards, each of which takes every size-th piece.

    Halves of a text are about different things, and ranks that read about different things drift
    apart between two exchanges. Interleaved shards are alike, also in how many words subsampling
    keeps: no rank has to wait for others.

    Parameters
    ----------
    ids : int array [n]
        The text.
    size : int
        Number of shards.
    piece : int
        Words in a row that go to the same shard.

    Returns
    -------
    list of int array
        One for each rank.
    """
    owner = np.arange(len(ids)) // piece % size
    return [ids[owner == rank] for rank in range(size)]


# ---- Reading the text


def count_known(ids, vocab):
    """Count the words of a text that are not UNK (id 0).

    Parameters
    ----------
    ids : sequence of n integers
        Anything with a length that gives an array for a slice; it is read a slice at a time.
    vocab : Vocab

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For an id that the vocabulary does not have.
    """
    known = 0
    for start in range(0, len(ids), READ_AT_ONCE):
        part = np.asarray(ids[start : start + READ_AT_ONCE])
        least, most = part.min(), part.max()
        if least < 0 or most >= len(vocab):
            known_ids = f"those of this vocabulary are 0 to {len(vocab) - 1:,}"
            raise ValueError(f"ids from {least} to {most}: {known_ids}")
        known += int(np.count_nonzero(part))
    return known


def read_parts(ids, intervals, at_once, first=0):
    """Read a text once, in parts of at most `at_once` of its intervals, from that of interval `first` on.

    Yields
    ------
    known : int32 array
        The words of a part that are not UNK.
    start, stop : int
        The intervals in which they are trained.
    """
    parts = -(-intervals // at_once)
    ends = np.linspace(0, intervals, parts + 1).astype(int).tolist()
    for start, stop in zip(ends, ends[1:]):
        if stop > first:
            part = np.asarray(ids[start * len(ids) // intervals : stop * len(ids) // intervals], np.int32)
            yield part[part > 0], start, stop


def next_blocks(ids, keep, intervals, noise, seed, blocks, first=0):
    """Make blocks for ever; each epoch subsamples the text anew.

    Parameters
    ----------
    seed : list of int
        With it and the number of an interval all that is drawn is given: who begins later gets the
        same blocks.
    first : int
        The interval to begin with, counted over all epochs.

    Yields
    ------
    words : int32 array
        The blocks of the next interval, see `cut_blocks`.
    pairs : float
        As many as word2vec would be expected to draw from them.
    """
    for epoch in count(first // intervals):
        begin = max(0, first - epoch * intervals)
        for known, start, stop in read_parts(ids, intervals, blocks.at_once, begin):
            parts = stop - start
            rng = np.random.default_rng([*seed, epoch, start])
            pieces = np.array_split(known, parts)
            kept = np.concatenate([subsample(piece, keep, rng) for piece in pieces])
            padded = pad_text(kept, blocks)
            pairs = (blocks.window + 1) * len(kept) / parts
            for part in range(parts):
                words = cut_blocks(padded, part, parts, noise, rng, blocks)
                if start + part >= begin:
                    yield words, pairs


# ---- Cutting it


def pad_text(text, blocks):
    """Put id 0 around a text, so far that whole blocks can be cut: int32 [window + n + window]."""
    n = max(1, -(-len(text) // blocks.tokens)) * blocks.tokens
    return np.pad(np.asarray(text, np.int32), (blocks.window, blocks.window + n - len(text)))


def cut_blocks(padded, part, parts, noise, rng, blocks):
    """Cut one of `parts` equal parts of a text into blocks with their random words.

    The blocks of one step come from places far apart, so that few words are in it twice. The last
    step is filled up with id 0.

    Parameters
    ----------
    padded : int32 array
        From `pad_text`.
    part, parts : int
    noise : int32 array [rows, random]
        From `noise_table`; the random words of a block are one of its rows.
    rng : numpy.random.Generator
    blocks : Blocks

    Returns
    -------
    int32 array [steps, blocks, window + tokens + window + random]
        What `make_train` takes.
    """
    around = blocks.tokens + 2 * blocks.window
    near = np.lib.stride_tricks.sliding_window_view(padded, around)[:: blocks.tokens]
    near = near[len(near) * part // parts : len(near) * (part + 1) // parts]
    steps = max(1, -(-len(near) // blocks.blocks))
    near = np.pad(near, ((0, steps * blocks.blocks - len(near)), (0, 0)))
    words = np.empty((steps, blocks.blocks, around + blocks.random), np.int32)
    of_block = words.swapaxes(0, 1)
    of_block[:, :, :around] = near.reshape(blocks.blocks, steps, -1)
    of_block[:, :, around:] = noise[rng.integers(len(noise), size=(blocks.blocks, steps))]
    return words


def noise_table(vocab, rng, blocks):
    """Draw the random words of many blocks: np.int32 [noise, random], without UNK.

    All words, each as often as its count ** 0.75 asks for, stand in order and are cut into equal
    parts, one for each place; a row has one word of each part. So each block has frequent and rare
    words as it should, and not by chance.
    """
    n = blocks.random * blocks.noise
    edges = np.cumsum(vocab.noise()[1:])
    words = 1 + np.searchsorted(edges, (np.arange(n) + 0.5) / n * edges[-1]).astype(np.int32)
    words = words.reshape(blocks.random, blocks.noise)
    return np.ascontiguousarray(rng.permuted(words, axis=1).T)
