"""A loop that trains by any strategy of notebook 06 and measures."""

import time
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from helpers.exchange.cost_model import median_seconds
from helpers.exchange.strategies import BATCH, DIM, LOCAL_STEPS, WINDOW, pairs_of
from helpers.text.skipgram import generate_batch, pair_batches, shard
from helpers.word2vec.blocks import interleave
from helpers.word2vec.model import make_tables

PAIR_LR = 0.01  # what a pair may change, to begin with: lr is PAIR_LR x the pairs of a step


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
    """What this process has written to sockets and files (Linux; nan elsewhere)."""
    found = Path("/proc/self/io")
    return int(found.read_text().split()[3]) if found.exists() else np.nan


def start_tables(vocab, seed, dim=DIM):
    """The three tables with biases at the log of the words' shares, which is known from the counts alone."""
    tables = make_tables(len(vocab), dim, seed)
    tables[2].assign(np.log((vocab.counts + 1) / vocab.counts.sum()))
    return tables


def train_strategy(
    strategy, ids, vocab, hvd=None, *, pairs=None, seconds=None, seed=0, communicate=True, report=None
):  # fmt: skip
    """Train on the shard of this rank until all ranks together have seen `pairs` pairs, or for about `seconds`.

    ids, vocab: the whole text. hvd: horovod.tensorflow, or None in one process. communicate=False: beside the other
    ranks, but with communication disabled. report(step, steps, loss, pairs_per_s): now and then.
    Returns a dict: pairs and bytes of this rank, seconds, steps, loss (mean of the last tenth), vectors np.float32
    [V, DIM]. ValueError unless one of `pairs` and `seconds` is given.
    """
    if (pairs is None) == (seconds is None):
        raise ValueError(f"give either pairs or seconds, not pairs={pairs} and seconds={seconds}")
    rank, size = (hvd.rank(), hvd.size()) if hvd else (0, 1)
    hvd = hvd if communicate else None
    together = size if communicate else 1  # so many ranks make a step
    if strategy.source == "words":
        epochs = pairs and pairs * size / together / pairs_of(ids, vocab)
        part = interleave(ids, size)[rank]
        train = partial(strategy.make, part, vocab, dim=DIM, window=WINDOW, seed=seed, hvd=hvd)
        return _train_epochs(train, epochs, seconds, hvd, report)
    tf.random.set_seed(seed)
    tables = start_tables(vocab, seed)
    step = strategy.make(tables, hvd)
    source = batches(strategy, shard(ids, rank, size), vocab, np.random.default_rng([seed, rank]))
    if seconds:
        pairs = size * strategy.batch * seconds / median_seconds(lambda: step(*next(source), 0.0).numpy(), 5)
    steps = max(4, int(pairs / (size * strategy.batch)))
    steps = int(hvd.broadcast(steps, 0)) if hvd else steps
    lr = PAIR_LR * (strategy.batch / LOCAL_STEPS if strategy.local else strategy.batch * together)
    found = _train_steps(step, source, steps, lr, size, report)
    if strategy.late and hvd:
        step([], [], 0.0, np.arange(len(vocab)))
    return {**found, "steps": steps, "vectors": tables[0].numpy()}


def _train_steps(step, source, steps, lr, size, report):
    """The timed part of `train_strategy`, for steps of pairs."""
    losses, seen, sent, begin = [], 0, bytes_sent(), time.perf_counter()
    for done in range(steps):
        centers, contexts = next(source)
        losses.append(step(centers, contexts, lr * (1 - 0.9 * done / steps)))
        seen += len(centers)
        if done % 50 == 49:
            loss = losses[-1].numpy()  # waits
            if report:
                report(done, steps, loss, size * seen / (time.perf_counter() - begin))
    loss = float(np.mean(losses[-max(1, steps // 10) :]))
    return {"pairs": seen, "seconds": time.perf_counter() - begin, "bytes": bytes_sent() - sent, "loss": loss}


def _train_epochs(train, epochs, seconds, hvd, report):
    """The same for blocks: so many epochs, at least 1, or as many as fit into `seconds` after a first one."""
    marks = []

    def mark(*values):
        marks.append((time.perf_counter(), bytes_sent(), *values))
        if report:
            report(*values)

    if seconds:
        train(epochs=1, report=mark)
        epochs = seconds / (marks[-1][0] - marks[0][0])
        epochs = float(hvd.broadcast(epochs, 0)) if hvd else epochs
        marks.clear()
    vectors = train(epochs=max(1, round(epochs)), report=mark)
    (begin, before, *_), (end, after, steps, _, loss, speed) = marks[0], marks[-1]
    found = {"pairs": speed * (end - begin), "seconds": end - begin, "bytes": after - before, "loss": float(loss)}
    return {**found, "steps": steps, "vectors": vectors}
