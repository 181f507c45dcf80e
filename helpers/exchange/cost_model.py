"""What an exchange costs: bytes and messages of a step, latency and bandwidth, the time to expect."""

import os
from functools import partial
from pathlib import Path
from statistics import median
from timeit import repeat

import numpy as np
import tensorflow as tf
from scipy.optimize import nnls

from helpers.exchange.strategies import DIM, SAMPLED, STRATEGIES, pairs_of
from helpers.word2vec.block_trainer import count_intervals
from helpers.word2vec.merging import due_rows

SIZES = (1_000, 30_000, 300_000, 3_000_000)  # float32 numbers
REPEATS = 7
MEGABYTE = 1e6


# ---- Measured


def median_seconds(work, repeats):
    """Measure the median of the seconds that work() takes, after one call that does not count."""
    work()
    return median(repeat(work, number=1, repeat=repeats))


def bytes_sent():
    """Return what this process has written to sockets and files, in bytes.

    It is nan on a Mac, and in ranks of MPI, which share memory.
    """
    counters = Path("/proc/self/io")
    mpi = "OMPI_COMM_WORLD_RANK" in os.environ
    if mpi or not counters.exists():
        return np.nan
    return int(counters.read_text().split()[3])


def allreduce_seconds(n_bytes, repeats, tensors=1):
    """Measure Horovod's allreduce, on every rank at the same time.

    Parameters
    ----------
    n_bytes : int
        Of each tensor, float32.
    repeats : int
    tensors : int
        So many in one tf.function.

    Returns
    -------
    float
        The median of the seconds.
    """
    import horovod.tensorflow as hvd

    # (one tensor many times would be reduced once)
    values = [tf.ones([n_bytes // 4]) for _ in range(tensors)]
    names = [f"bytes_{n_bytes}_{tensors}_{i}" for i in range(tensors)]

    @tf.function
    def reduce():
        return [hvd.allreduce(v, op=hvd.Sum, name=name) for v, name in zip(values, names)]

    return median_seconds(reduce, repeats)


def time_collectives(sizes=SIZES, hvd=None):
    """Measure allreduces and allgathers, on every rank at the same time.

    Parameters
    ----------
    sizes : sequence of int
        float32 numbers that a rank has.
    hvd : module, optional
        horovod.tensorflow; without it, it is imported.

    Returns
    -------
    list of (str, float, float)
        The kind, the bytes that a rank sends, and the median of the seconds.
    """
    if hvd is None:
        import horovod.tensorflow as hvd
    found = []
    for n in sizes:
        bytes_of_rank = 4 * n
        sent = {
            "allreduce": ring_bytes(hvd.size(), bytes_of_rank),
            "allgather": (hvd.size() - 1) * bytes_of_rank,
        }
        for kind, n_bytes in sent.items():
            collective = partial(getattr(hvd, kind), tf.ones([n]), name=f"{kind}{n}")
            seconds = median_seconds(partial(finished, collective), REPEATS)
            found.append((kind, n_bytes, seconds))
    return found


def finished(collective):
    """Call it and wait until its result is there."""
    return collective().numpy()


def fit_line(n_bytes, seconds):
    """Fit seconds = latency + bytes / bandwidth, neither negative.

    Least squares in the relative error, so that small and large messages weigh the same.

    Parameters
    ----------
    n_bytes, seconds : sequence of float

    Returns
    -------
    latency : float
        In s.
    bandwidth : float
        In bytes/s.
    error : float
        The RMS of the relative errors.
    """
    megabytes = np.asarray(n_bytes) / MEGABYTE
    seconds = np.asarray(seconds)
    terms = np.stack([np.ones(len(seconds)), megabytes], axis=1) / seconds[:, None]
    (latency, per_megabyte), residual = nnls(terms, np.ones(len(seconds)))
    bandwidth = MEGABYTE / per_megabyte if per_megabyte else np.inf
    return latency, bandwidth, residual / np.sqrt(len(seconds))


def latency_and_bandwidth(timings):
    """Fit the rows of `time_collectives`.

    Returns
    -------
    latency : float
        In s.
    bandwidth : float
        In bytes/s.
    """
    _, sent, seconds = zip(*timings)
    latency, bandwidth, _ = fit_line(sent, seconds)
    return latency, bandwidth


# ---- Computed


def ring_bytes(size, n_bytes):
    """Compute the bytes that each of `size` ranks sends in a ring allreduce of n_bytes."""
    return 2 * (size - 1) / size * n_bytes


def distinct(n, share, drawn=0):
    """Compute how many different rows a batch is expected to touch.

    Parameters
    ----------
    n : int
        Words.
    share : float array [V]
        How likely a word is each row.
    drawn : int
        Log-uniform samples beside the words.

    Returns
    -------
    float
    """
    rank = np.arange(1, len(share) + 1)
    sampled = np.log1p(1 / rank) / np.log(len(share) + 1)
    return float(np.sum(1 - (1 - share) ** n * (1 - sampled) ** drawn))


def row_bytes(centers, contexts):
    """Compute the bytes of so many rows of centers, and of contexts with their biases.

    With each row travels its number: int32 of centers, int64 of contexts and of biases.
    """
    return centers * (4 * DIM + 4) + contexts * (4 * DIM + 8 + 4 + 8)


def planned(name, ids, vocab, size=2):
    """Compute what a rank does and sends in a step of a strategy.

    A step of "blocks" is an interval; its bytes include a share of the centers' rows that travel
    after the last one. The messages are the tensors that the code hands over, six where rows of
    gradients travel; inside of a tf.function these are five tensors in about three messages, as
    lesson 12 counts.

    Parameters
    ----------
    name : str
        Of STRATEGIES.
    ids : int array [n]
        The whole text.
    vocab : Vocab
    size : int
        Ranks that share the text.

    Returns
    -------
    pairs, messages, bytes : float
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
    intervals = count_intervals(-(-len(ids) // size))
    rows = 2 * due + words / intervals
    pairs = pairs_of(ids, vocab) / size / intervals
    return pairs, 1, ring * rows * (row + 4)


def predicted(name, ids, vocab, disabled, network, size=2, plan=planned):
    """Predict the pairs/s of all ranks.

    A step takes compute + messages x latency + bytes / bandwidth; where computing and communicating
    overlap, the longer of the two.

    Parameters
    ----------
    name, ids, vocab, size
        See `planned`.
    disabled : float
        Pairs/s of all ranks with communication disabled.
    network : tuple of float
        Latency in s and bandwidth in bytes/s, see `latency_and_bandwidth`.
    plan : function
        In place of `planned`.

    Returns
    -------
    float
    """
    pairs, messages, sent = plan(name, ids, vocab, size)
    compute = size * pairs / disabled
    communicate = messages * network[0] + sent / network[1]
    combine = max if name in ("overlap", "blocks") else sum
    return size * pairs / combine([compute, communicate])
