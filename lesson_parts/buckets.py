"""What lesson 29 draws and tells of unequal steps, and the norm of a gradient."""

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


def draw_idle(tokens, computing, ways, steps):
    """Draw the first steps of the first turn, without the allreduce, a panel for each way: how long, and what is idle.

    Parameters
    ----------
    tokens : dict of str to array of int, [steps, ranks]
        {way of making batches: tokens}.
    computing : array of float, [ranks, turns, ways, steps]
        Seconds; the ways are all those of `tokens`.
    ways : list of str
        Those to draw.
    steps : int
    """
    numbers = np.unique([tokens[way][:steps] for way in ways])
    shades = plt.cm.Blues(np.linspace(0.4, 1, len(numbers)))
    colors = {"idle": "#E69F00"} | {f"{n} tokens": shade for n, shade in zip(numbers, shades, strict=True)}
    figure, axes = plt.subplots(len(ways), figsize=(6, 3.6), sharex=True)
    for ax, way in zip(axes, ways, strict=True):
        drawn = computing[:, 0, [*tokens].index(way), :steps]
        ends = drawn.max(axis=0).cumsum()
        begins = ends - drawn.max(axis=0)
        spans = []
        for of_steps, lengths in zip(drawn, tokens[way][:steps].T, strict=True):
            spans.append([])
            for n, begin, seconds, end in zip(lengths, begins, of_steps, ends, strict=True):
                spans[-1] += [(f"{n} tokens", begin, begin + seconds), ("idle", begin + seconds, end)]
        gantt(ax, spans, colors, legend=False)
        for end in 1e3 * ends[:-1]:
            ax.axvline(end, color="white", linewidth=1.5)
        idle, by_tokens = idle_of_ranks(drawn).mean(), idle_of_ranks(tokens[way][:steps].T).mean()
        ax.set_title(f"{way}: {1e3 * ends[-1]:.0f} ms for {steps} steps, {idle:.0%} idle (by tokens {by_tokens:.0%})")
        ax.label_outer()
    patches = [Patch(color=color, label=what) for what, color in colors.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=4)


def tokens_table(tokens):
    """Make a table of the tokens of some steps, and of what they say if a step takes as long as its tokens.

    Parameters
    ----------
    tokens : dict of str to array of int, [steps, ranks]
        {way of making batches: tokens}.
    """
    shortest = min(of_steps.min() for of_steps in tokens.values())
    rows = []
    for way, of_steps in tokens.items():
        short = (of_steps.max(axis=1) == shortest).mean()
        slower = of_steps.max(axis=1).mean()
        rows.append([way, f"{short:.0%}", f"{of_steps.mean():.1f}", f"{slower:.1f}", *_by_tokens(tokens, way)])
    columns = ["batches", "steps with all short", "tokens of a rank", "of the slower rank", "idle", "time"]
    return table(columns, rows)


def waiting_table(tokens, computing, lasted):
    """Make a table of what is idle, mean of the ranks, and of the time, by tokens and by the clock.

    Parameters
    ----------
    tokens : dict of str to array of int, [steps, ranks]
        {way of making batches: tokens}.
    computing : array of float, [ranks, turns, ways, steps]
        Seconds.
    lasted : array of float, [turns, ways]
        Seconds until all ranks were done. The time is given with that of the same bucket as 1.
    """
    same = lasted[:, [*tokens].index("same bucket")]
    rows = []
    for number, way in enumerate(tokens):
        idle = 100 * idle_of_ranks(computing[:, :, number]).mean(axis=0)  # [turn]
        times = lasted[:, number] / same
        expected_idle, expected_time = _by_tokens(tokens, way)
        rows.append([way, expected_idle, median_and_range(idle, 0), expected_time, median_and_range(times)])
    return table(["batches", "idle, by tokens", "idle, %", "time, by tokens", "time"], rows)


def _by_tokens(tokens, way):
    """Format (what is idle, the time with that of the same bucket as 1), if a step takes as long as its tokens."""
    slower = {name: of_steps.max(axis=1).mean() for name, of_steps in tokens.items()}
    return f"{idle_of_ranks(tokens[way].T).mean():.0%}", f"{slower[way] / slower['same bucket']:.2f}"


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
