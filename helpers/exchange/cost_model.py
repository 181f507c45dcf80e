"""What an exchange costs: bytes that are sent, seconds that it takes, latency and bandwidth that explain them."""

import os
from functools import partial
from pathlib import Path
from statistics import median
from timeit import repeat

import numpy as np
import tensorflow as tf
from scipy.optimize import nnls

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
