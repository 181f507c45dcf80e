"""What lesson 29 does with the times of unequal steps, and the norm of a gradient."""

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from matplotlib.patches import Patch

from helpers.plots import gantt, median_and_range, table


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


def draw_idle(panels):
    """Draw some steps of each way of making batches below each other, without the allreduce; title: what is idle.

    Parameters
    ----------
    panels : dict of str to (array of int, [steps, ranks], array of float, [ranks, steps])
        {way: (tokens, seconds of computing)}.
    """
    numbers = np.unique([tokens for tokens, _ in panels.values()])
    shades = plt.cm.Blues(np.linspace(0.4, 1, len(numbers)))
    colors = {"idle": "#E69F00"} | {f"{n} tokens": shade for n, shade in zip(numbers, shades, strict=True)}
    figure, axes = plt.subplots(len(panels), figsize=(6, 3.6), sharex=True)
    for ax, (way, (tokens, computing)) in zip(axes, panels.items(), strict=True):
        ends = computing.max(axis=0).cumsum()
        begins = ends - computing.max(axis=0)
        spans = []
        for of_steps, lengths in zip(computing, tokens.T, strict=True):
            spans.append([])
            for n, begin, seconds, end in zip(lengths, begins, of_steps, ends, strict=True):
                spans[-1] += [(f"{n} tokens", begin, begin + seconds), ("idle", begin + seconds, end)]
        gantt(ax, spans, colors, legend=False)
        for end in 1e3 * ends[:-1]:
            ax.axvline(end, color="white", linewidth=1.5)
        ax.set_title(f"{way}: {idle_of_ranks(computing).mean():.0%} of the ranks' time is idle")
        ax.label_outer()
    patches = [Patch(color=color, label=what) for what, color in colors.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=4)


def idle_table(tokens, computing, unequal):
    """Make a table of what is idle, in %, mean of the ranks: in all steps and in the unequal ones.

    Parameters
    ----------
    tokens : dict of str to array of int, [steps, ranks]
        {way of making batches: tokens}.
    computing : array of float, [ranks, turns, ways, steps]
        Seconds.
    unequal : array of bool, [steps]
    """
    rows = []
    for way, (name, of_steps) in enumerate(tokens.items()):
        row = [name]
        for chosen in (np.ones_like(unequal), unequal):
            idle = 100 * idle_of_ranks(computing[:, :, way][..., chosen]).mean(axis=0)  # [turn]
            row += [f"{idle_of_ranks(of_steps[chosen].T).mean():.0%}", median_and_range(idle, 0)]
        rows.append(row)
    return table(["batches", "idle, by tokens", "idle, %", "unequal steps: by tokens", "idle, %"], rows)


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
