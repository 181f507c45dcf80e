"""What an exchange should cost: messages and bytes of a step, latency and bandwidth fitted, and the time to expect."""

from functools import partial
from statistics import median
from timeit import repeat

import numpy as np
import tensorflow as tf
from scipy.optimize import nnls

from helpers.exchange.strategies import DIM, SAMPLED, STRATEGIES, pairs_of
from helpers.word2vec.replicas import due_rows
from helpers.word2vec.shared_negatives import count_intervals


def ring_bytes(size, n_bytes):
    """The bytes that each of `size` ranks sends, and receives, in a ring allreduce of n_bytes."""
    return 2 * (size - 1) / size * n_bytes


def median_seconds(work, repeats):
    """The median of the seconds that work() takes, after one call that does not count."""
    work()
    return median(repeat(work, number=1, repeat=repeats))


def allreduce_seconds(n_bytes, repeats, tensors=1):
    """On every rank: median seconds of a tf.function that allreduces float32 tensors of n_bytes each with Horovod."""
    import horovod.tensorflow as hvd

    values = [tf.ones([n_bytes // 4]) for _ in range(tensors)]  # one tensor many times would be reduced once
    names = [f"bytes_{n_bytes}_{tensors}_{i}" for i in range(tensors)]
    reduce = tf.function(lambda: [hvd.allreduce(v, op=hvd.Sum, name=n) for v, n in zip(values, names)])
    return median_seconds(reduce, repeats)


def fit_line(n_bytes, seconds):
    """Fit seconds = latency + bytes / bandwidth, least squares in the relative error, neither negative.

    n_bytes, seconds: sequences of numbers. Returns (latency in s, bandwidth in bytes/s, RMS of the relative errors).
    """
    megabytes, seconds = np.asarray(n_bytes) / 1e6, np.asarray(seconds)
    terms = np.stack([np.ones(len(seconds)), megabytes], axis=1) / seconds[:, None]
    (latency, per_megabyte), residual = nnls(terms, np.ones(len(seconds)))
    return latency, 1e6 / per_megabyte if per_megabyte else np.inf, residual / np.sqrt(len(seconds))


def distinct(n, share, drawn=0):
    """How many different rows n words with these shares are expected to touch, beside `drawn` log-uniform samples."""
    rank = np.arange(1, len(share) + 1)
    sampled = np.log1p(1 / rank) / np.log(len(share) + 1)
    return float(np.sum(1 - (1 - share) ** n * (1 - sampled) ** drawn))


def planned(name, ids, vocab, size=2):
    """(pairs, messages, bytes) of a rank in a step of this strategy, when `size` ranks share the text.

    A step of "blocks" is an interval; its bytes include a share of the centers' rows that travel after the last one.
    """
    words, row = len(vocab), 4 * DIM
    pairs, whole = STRATEGIES[name].batch, 4 * words * (2 * DIM + 1)
    ring = 2 * (size - 1) / size
    due = np.mean([len(due_rows(step, words)) for step in range(64)])
    if name in ("canonical", "bigger batch"):
        return pairs, 6, (size - 1) * row_bytes(pairs, pairs + SAMPLED)
    if name == "deduplicated rows":
        share = vocab.counts * vocab.keep_probability()
        share = share / share.sum()
        rows = distinct(pairs, share), distinct(pairs, share, SAMPLED)
        return pairs, 6, (size - 1) * row_bytes(*rows)
    if name in ("dense", "local SGD"):
        return pairs, 3 if name == "dense" else 1, ring * whole
    if name in ("hot and cold", "overlap"):
        return pairs, 1, ring * due * (2 * row + 4)
    intervals = count_intervals(-(-len(ids) // size), None)
    rows = 2 * due + words / intervals
    pairs = pairs_of(ids, vocab) / size / intervals
    return pairs, 1, ring * rows * (row + 4)


def row_bytes(centers, contexts):
    """The bytes of so many rows of centers and of contexts with their biases and row numbers (int32, int64, int64)."""
    return centers * (4 * DIM + 4) + contexts * (4 * DIM + 8 + 4 + 8)


def predicted(name, ids, vocab, disabled, network, size=2, plan=planned):
    """Pairs/s of all ranks. A step takes compute + messages x latency + bytes / bandwidth; if they overlap, the longer.

    disabled: pairs/s with communication disabled; network: latency and bandwidth of `fit`; plan: see `planned`.
    """
    pairs, messages, sent = plan(name, ids, vocab, size)
    compute = size * pairs / disabled
    communicate = messages * network[0] + sent / network[1]
    combine = max if name in ("overlap", "blocks") else sum
    return size * pairs / combine([compute, communicate])


def time_collectives(hvd, sizes=(1_000, 30_000, 300_000, 3_000_000)):
    """[(kind, bytes that a rank sends, seconds)]: the median of 7 allreduces and allgathers of so many float32."""
    size, found = hvd.size(), []
    for n in sizes:
        for kind, sent in ("allreduce", ring_bytes(size, 4 * n)), ("allgather", 4 * n * (size - 1)):
            call = partial(getattr(hvd, kind), tf.ones([n]), name=f"{kind}{n}")
            found.append((kind, sent, median_seconds(lambda: call().numpy(), 7)))  # noqa: B023
    return found


def fit(timings):
    """(latency in s, bandwidth in bytes/s) of the rows of `time_collectives`; see `fit_line`."""
    return fit_line([sent for _, sent, _ in timings], [seconds for *_, seconds in timings])[:2]
