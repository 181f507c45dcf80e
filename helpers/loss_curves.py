"""The harness of lesson 09: a training loop with a clock, and the drawings of its losses."""

import time
from itertools import islice
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL

# ---- Clocks


class Copy(NamedTuple):
    """A run so far: its steps, its seconds, how many cores the process kept busy, and its tables as arrays."""

    steps: int
    seconds: float
    cores: float
    tables: list


def timed_loop(step, tables, batches, steps):
    """Train, and after each eighth of the steps stop the clock and copy the tables.

    Returns
    -------
    list of Copy
        Eight copies; the clock and `cores`, the processor's seconds per second, stand still while a table is copied.

    Raises
    ------
    ValueError
        If the batches end before the steps.
    """
    copy_after = [steps * eighth // 8 for eighth in range(1, 9)]
    copies, seconds, busy, taken = [], 0.0, 0.0, 0
    started, busy_before = time.perf_counter(), time.process_time()
    for taken, (centers, contexts) in enumerate(islice(batches, steps), start=1):
        step(centers, contexts)
        if taken in copy_after:
            seconds += time.perf_counter() - started
            busy += time.process_time() - busy_before
            copies.append(Copy(taken, seconds, busy / seconds, [table.numpy() for table in tables]))
            started, busy_before = time.perf_counter(), time.process_time()
    if taken < steps:
        raise ValueError(f"the text ended after {taken} of {steps} steps: take fewer pairs")
    return copies


def first_below(level, places, losses):
    """Interpolate where a curve first reaches a loss.

    Parameters
    ----------
    level : float
        The loss to be reached.
    places : sequence of float
        Pairs or seconds, ascending; the first is before training.
    losses : sequence of float
        The loss at each place; the first is above the level.

    Returns
    -------
    float
        The place at which the straight line between two losses meets the level.

    Raises
    ------
    StopIteration
        If the curve stays above the level.
    """
    k = next(k for k, loss in enumerate(losses) if loss <= level)
    return np.interp(level, [losses[k], losses[k - 1]], [places[k], places[k - 1]])


# ---- Drawings


def draw_sweep(rates, sweep, untrained, found_below, title):
    """Draw the losses of one process and of two ranks against the rate, with the loss that counts as found."""
    plt.figure(figsize=(6, 4.2))
    for name, losses, color in zip(("one process", "two ranks"), sweep, (SERIAL, COLORS[0])):
        plt.plot(rates, losses, "o-", color=color, label=name)
    plt.axhline(untrained, ls=":", color="gray", label="before training")
    plt.axhline(found_below, ls="--", color="gray", label="found only if below this")
    plt.xscale("log")
    plt.xticks(rates, rates)
    plt.minorticks_off()
    plt.xlabel("learning rate of Adam")
    plt.ylabel("NCE loss, held-out pairs")
    plt.title(title)
    plt.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    plt.show()


def draw_curves(curves, pairs, seconds, level, title):
    """Draw losses against thousands of pairs, and below against seconds: a colour for each way, a line for each seed.

    Parameters
    ----------
    curves : dict of {str: float array [seeds, points]}
        Of each of three ways its losses; all begin before training.
    pairs : float array [points]
        The pairs that each point has seen.
    seconds : dict of {str: float array [seeds, points]}
    level : float
        The loss of the dotted line.
    title : str
    """
    _, (above, below) = plt.subplots(2, sharey=True, figsize=(6, 6.6), layout="constrained")
    for (name, losses), color, line in zip(curves.items(), (SERIAL, COLORS[2], COLORS[0]), (".-", ".--", ".-")):
        for seed, of_seed in enumerate(losses):
            label = name if seed == 0 else None
            above.plot(pairs / 1000, of_seed, line, color=color, label=label)
            below.plot(seconds[name][seed], of_seed, line, color=color)
    for panel, what in ((above, "thousand pairs"), (below, "seconds of training")):
        panel.axhline(level, ls=":", color="gray", label=f"loss {level:.2f}")
        panel.set(xlabel=what, ylabel="NCE loss, held-out pairs")
    above.set_title(title)
    above.legend()
    plt.show()
