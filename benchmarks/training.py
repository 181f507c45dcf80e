"""A loop that trains by any strategy of lesson 12, or of more_strategies, and measures."""

import time
from functools import partial

import numpy as np
import tensorflow as tf

from helpers.exchange.cost_model import bytes_sent, median_seconds
from helpers.text.skipgram import shard
from helpers.word2vec.blocks import interleave
from lesson_parts.strategies import DIM, LOCAL_STEPS, WINDOW, batches, pairs_of, start_tables

PAIR_LR = 0.01  # what a pair may change, to begin with: lr is PAIR_LR x the pairs of a step


def train_strategy(
    strategy, ids, vocab, *, pairs=None, seconds=None, seed=0, communicate=True, report=None, hvd=None
):
    """Train on the shard of this rank until all ranks together have seen `pairs` pairs, or for about `seconds`.

    ids, vocab: the whole text. hvd: horovod.tensorflow, or None in one process. communicate=False: beside the other
    ranks, but with communication disabled. report(step, steps, loss, pairs_per_s): now and then. Each rank draws pairs
    and negatives of its own.
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
        settings = {"dim": DIM, "window": WINDOW, "seed": seed, "hvd": hvd}
        train = partial(strategy.make, part, vocab, **settings)
        return _train_epochs(train, epochs, seconds, hvd, report)
    tf.random.set_seed(seed + 1_000 * rank)  # each rank draws negatives of its own; rank 0 as one process
    tables = start_tables(vocab, seed=seed)
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
    losses = []
    seen = 0
    sent = bytes_sent()
    begin = time.perf_counter()
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
