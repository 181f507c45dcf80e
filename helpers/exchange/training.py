"""What the strategies of notebook 06 train on: the start of their tables, and their batches."""

import os
from pathlib import Path

import numpy as np

from helpers.exchange.strategies import BATCH, DIM, WINDOW
from helpers.text.skipgram import generate_batch, pair_batches
from helpers.word2vec.model import make_tables


def batches(strategy, ids, vocab, rng):
    """Batches for ever: (centers, contexts), both int32 [strategy.batch], or empty where the text has no pair.

    Only "pairs" drop frequent words, as `Vocab.keep_probability` says.
    """
    if strategy.source == "windows" and len(ids) > 2 * WINDOW:
        while True:
            size = strategy.batch if strategy.batch >= BATCH else 2 * int(rng.integers(32, 65))
            yield generate_batch(ids, size, 2, WINDOW, rng)
    keep = vocab.keep_probability()
    while True:
        batch, enough = None, len(ids) * WINDOW >= strategy.batch
        for batch in pair_batches(ids, strategy.batch, WINDOW, rng, keep) if enough else ():
            yield batch
        if batch is None:
            yield np.empty((2, 0), np.int32)


def bytes_sent():
    """What this process has written to sockets and files. nan on a Mac, and in ranks of MPI, which share memory."""
    found, mpi = Path("/proc/self/io"), "OMPI_COMM_WORLD_RANK" in os.environ
    return int(found.read_text().split()[3]) if found.exists() and not mpi else np.nan


def start_tables(vocab, seed, dim=DIM):
    """The three tables with biases at the log of the words' shares, which is known from the counts alone."""
    tables = make_tables(len(vocab), dim, seed)
    tables[2].assign(np.log((vocab.counts + 1) / vocab.counts.sum()))
    return tables
