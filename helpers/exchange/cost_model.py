"""What an exchange should cost: bytes of a step, latency and bandwidth fitted, and the pairs per second to expect."""

import time
from statistics import median

import numpy as np
import tensorflow as tf
from scipy.optimize import nnls

from helpers.exchange.strategies import PARTS, SAMPLED
from helpers.exchange.training import DIM, STRATEGIES, pairs_of
from helpers.word2vec.replicas import due_rows
from helpers.word2vec.shared_negatives import count_intervals


def ring_bytes(size, n_bytes):
    """The bytes that each of `size` ranks sends, and receives, in a ring allreduce of n_bytes."""
    return 2 * (size - 1) / size * n_bytes


def median_seconds(work, repeats):
    """The median of the seconds that work() takes, after one call that does not count."""
    work()
    marks = [time.perf_counter()]
    for _ in range(repeats):
        work()
        marks.append(time.perf_counter())
    return median(np.diff(marks))


def allreduce_seconds(n_bytes, repeats, tensors=1):
    """On every rank: median seconds of a tf.function that allreduces float32 tensors of n_bytes each with Horovod."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

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
    """(pairs, messages, bytes) of a rank in a step of this rung, when `size` ranks share one epoch of the text.

    A step of "blocks" is an interval; its bytes include a share of the centers' rows that travel after the last one.
    """
    share = vocab.counts * vocab.keep_probability()
    share, words, pairs = share / share.sum(), len(vocab), STRATEGIES[name].batch
    intervals = count_intervals(-(-len(ids) // size), None)
    if name == "blocks":
        pairs = pairs_of(ids, vocab) / size / intervals
    centers, contexts = distinct(pairs, share), distinct(pairs, share, SAMPLED)
    due = np.mean([len(due_rows(step, words)) for step in range(64)])
    touched = distinct(2 * pairs, share, PARTS * SAMPLED)
    dense, row = 4 * words * (2 * DIM + 1), 4 * DIM
    gathered = {
        "merged rows": centers * (row + 4) + contexts * (row + 8 + 4 + 8),
        "one message": (centers + contexts) * (row + 8),
        "accumulation": (centers + contexts) * (row + 8),
        "changed rows": touched * (2 * row + 8),
    }
    reduced = {
        "dense": dense,
        "dense, float16": dense / 2,
        "deltas": dense,
        "hot and cold": due * (2 * row + 4),
        "overlap": due * (2 * row + 4),
        "blocks": (2 * due + words / intervals) * (row + 4),
    }
    messages = {"dense": 3, "dense, float16": 3, "merged rows": 6}
    if name in reduced:
        return pairs, messages.get(name, 1), 2 * (size - 1) / size * reduced[name]
    sparse = pairs * (row + 4) + (pairs + SAMPLED) * (row + 8 + 4 + 8)
    return pairs, messages.get(name, 1 if name in gathered else 6), (size - 1) * gathered.get(name, sparse)


def time_collectives(hvd, sizes=(1_000, 30_000, 300_000, 3_000_000)):
    """[(kind, bytes that a rank sends, seconds)]: the median of 7 allreduces and allgathers of so many float32."""
    found = []
    for kind, share in [("allreduce", 2 * (hvd.size() - 1) / hvd.size()), ("allgather", hvd.size() - 1)]:
        for n in sizes:
            array, times = tf.ones([n]), []
            for _ in range(8):
                begin = time.perf_counter()
                getattr(hvd, kind)(array, name=f"{kind}{n}").numpy()
                times.append(time.perf_counter() - begin)
            found.append((kind, 4 * n * share, float(np.median(times[1:]))))
    return found


def fit(timings):
    """(latency in s, bandwidth in bytes/s) of the rows of `time_collectives`; see `wire.fit_line`."""
    return fit_line([sent for _, sent, _ in timings], [seconds for *_, seconds in timings])[:2]


def predicted(name, ids, vocab, silent, network, size=2):
    """Pairs/s of all ranks. silent: the same without a word to each other; network: latency and bandwidth of `fit`."""
    pairs, messages, sent = planned(name, ids, vocab, size)
    latency, bandwidth = network
    compute, talk = size * pairs / silent, messages * latency + sent / bandwidth
    step = max(compute, talk) if name in ("overlap", "blocks") else compute + talk
    return size * pairs / step
