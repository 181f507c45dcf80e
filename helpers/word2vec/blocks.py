"""A text cut into blocks of tokens with their random words, for `train_blocks`, and the hyper-parameters of both."""

from dataclasses import dataclass

import numpy as np

from helpers.text.long_text import ROW, known_parts
from helpers.text.skipgram import subsample


@dataclass(frozen=True)
class Blocks:
    """The hyper-parameters of the block trainer that seldom need a change. An epoch has at least `intervals` exchanges,
    also on a short text. `window` and `negatives` are given to `train_blocks`, which puts them here."""

    tokens: int = 16  # center words of a block
    blocks: int = 32  # blocks of a step
    random: int = 22  # random words of a block
    interval: int = 200_000  # words that a rank trains between two exchanges, at most
    intervals: int = 10
    at_once: int = 10  # intervals of a LongText that are in memory
    hot: int = 250  # see `due_rows`
    half: bool = False  # send changes as float16, for slow links
    noise: int = 50_000  # the random words of so many blocks are drawn beforehand
    largest_logit: float = 6.0
    window: int = 5
    negatives: float = 5


BLOCKS = Blocks()


def interleave(ids, size, piece=ROW):
    """A text in `size` shards, a list of int arrays: each takes every size-th piece of so many words.

    Halves of a text are about different things, and ranks that read about different things drift apart between two
    exchanges. Interleaved shards are alike, also in how many words subsampling keeps: no rank has to wait for others.
    """
    owner = np.arange(len(ids)) // piece % size
    return [ids[owner == rank] for rank in range(size)]


def next_blocks(text, keep, intervals, noise, rng, blocks):
    """For ever: (blocks of the next interval, see `cut_blocks`, its pairs). Each epoch subsamples the text anew.

    text: int [n], or a LongText, of which `at_once` intervals are in memory.
    """
    while True:
        for known, count in known_parts(text, intervals, blocks.at_once):
            kept = np.concatenate([subsample(part, keep, rng) for part in np.array_split(known, count)])
            padded, pairs = pad_text(kept, blocks), (blocks.window + 1) * len(kept) / count
            for part in range(count):
                yield cut_blocks(padded, part, count, noise, rng, blocks), pairs


def pad_text(text, blocks):
    """A text with id 0 around it, so far that it is cut into whole blocks: int32 [window + n + window]."""
    n = max(1, -(-len(text) // blocks.tokens)) * blocks.tokens
    return np.pad(np.asarray(text, np.int32), (blocks.window, blocks.window + n - len(text)))


def cut_blocks(padded, part, parts, noise, rng, blocks):
    """One of `parts` equal parts of a text as blocks, with their random words, for `make_train`.

    padded: from `pad_text`. Returns int32 [steps, blocks, window + tokens + window + random]; the last step is filled
    up with id 0. The blocks of one step come from places far apart, so that few words are in it twice. The random
    words of a block are a row of `noise`, see `noise_table`.
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
    """Random words for so many blocks, np.int32 [noise, random]; no UNK.

    All words, each as often as its count ** 0.75 asks for, stand in order and are cut into equal parts, one for each
    place; a row has one word of each part. So each block has frequent and rare words as it should, and not by chance.
    """
    n, edges = blocks.random * blocks.noise, np.cumsum(vocab.noise()[1:])
    words = 1 + np.searchsorted(edges, (np.arange(n) + 0.5) / n * edges[-1]).astype(np.int32)
    return np.ascontiguousarray(rng.permuted(words.reshape(blocks.random, blocks.noise), axis=1).T)
