"""What lesson 29 does with the times of unequal steps, and the norm of a gradient."""

import numpy as np
import tensorflow as tf

from helpers.plots import median_and_range, table


def idle_of_ranks(seconds):
    """Compute which share of its time each rank waits, if a step lasts until its slowest rank is done.

    Parameters
    ----------
    seconds : array of float, [ranks, ..., steps]
        How long each rank computes in each step (tokens do as well).

    Returns
    -------
    numpy.ndarray
        The shares, [ranks, ...].
    """
    seconds = np.asarray(seconds)
    return 1 - seconds.sum(axis=-1) / seconds.max(axis=0).sum(axis=-1)


def idle_table(expected, computing):
    """Make a table of what is idle, in %, and in each turn how much more than with the same bucket.

    Parameters
    ----------
    expected : dict of str to float
        {way of making batches: the share by tokens}.
    computing : array of float, [ranks, turns, ways, steps]
        Seconds.
    """
    idle = 100 * idle_of_ranks(computing)  # [rank, turn, way]
    mean = idle.mean(axis=0)
    same = mean[:, [*expected].index("same bucket")]
    rows = []
    for way, (name, share) in enumerate(expected.items()):
        of_ranks = [median_and_range(of_rank[:, way], 0) for of_rank in idle]
        above = np.round(mean[:, way] - same) + 0  # no "-0"
        rows.append([name, f"{share:.0%}", *of_ranks, median_and_range(above, 0)])
    names = [f"rank {rank} idle, %" for rank in range(len(idle))]
    return table(["batches", "idle, by tokens", *names, "mean, above same bucket"], rows)


def parts_table(ways, computing, lasted):
    """Make a table of the two parts of a step, in ms, and in each turn how much longer than with the same bucket.

    Parameters
    ----------
    ways : iterable of str
        The ways of making batches.
    computing : array of float, [ranks, turns, ways, steps]
        Seconds; in each step those of the slowest rank count.
    lasted : array of float, [turns, ways]
        Seconds, with the allreduces: what is not computing is theirs.
    """
    ways = [*ways]
    slowest = computing.max(axis=0).sum(axis=-1)
    parts = 1e3 * np.array([slowest, lasted - slowest]) / computing.shape[-1]  # [part, turn, way]
    same = ways.index("same bucket")
    rows = []
    for way, name in enumerate(ways):
        row = [name]
        for part in parts:
            above = np.round(part[:, way] - part[:, same], 1) + 0  # no "-0"
            row += [median_and_range(part[:, way], 1), median_and_range(above, 1)]
        rows.append(row)
    return table(["batches", "computing, ms", "above same bucket", "allreduce, ms", "above same bucket"], rows)


def time_table(slower, lasted, dates):
    """Make a table of how long the ways take, with that of the same bucket as 1, and of dates a second.

    Parameters
    ----------
    slower : dict of str to float
        {way of making batches: tokens a step of the slower rank}.
    lasted : array of float, [turns, ways]
        Seconds.
    dates : int
        That all ranks read in a turn of a way.
    """
    rows = []
    same = lasted[:, [*slower].index("same bucket")]
    for way, (name, tokens) in enumerate(slower.items()):
        times = lasted[:, way]
        by_tokens = f"{tokens / slower['same bucket']:.2f}"
        rows.append([name, by_tokens, median_and_range(times / same), median_and_range(dates / times, 0)])
    return table(["batches", "time by tokens", "time by the clock", "dates/s"], rows)


def gradient_norm(loss_of, variables):
    """Compute the global norm of a gradient: of all variables, put into one vector.

    Parameters
    ----------
    loss_of : function
        Without arguments.
    variables : list
    """
    with tf.GradientTape() as tape:
        loss = loss_of()
    gradients = tape.gradient(loss, variables)
    # an embedding's gradient comes as some rows, the same one perhaps twice: make it a whole table
    return float(tf.linalg.global_norm([tf.convert_to_tensor(gradient) for gradient in gradients]))
