"""The harness of lesson 09: a training loop with a clock, and the drawing of its losses."""

import time
from itertools import chain, islice
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

    The clock starts after `warm_up` with the first batch.

    Returns
    -------
    list of Copy
        Eight copies; the clock and `cores`, the processor's seconds per second, stand still while a table is copied.

    Raises
    ------
    ValueError
        If the batches end before the steps.
    """
    first = next(batches)
    warm_up(step, first)
    copy_after = [steps * eighth // 8 for eighth in range(1, 9)]
    copies, seconds, busy, taken = [], 0.0, 0.0, 0
    started, busy_before = time.perf_counter(), time.process_time()
    for taken, (centers, contexts) in enumerate(islice(chain([first], batches), steps), start=1):
        step(centers, contexts)
        if taken in copy_after:
            seconds += time.perf_counter() - started
            busy += time.process_time() - busy_before
            copies.append(Copy(taken, seconds, busy / seconds, [table.numpy() for table in tables]))
            started, busy_before = time.perf_counter(), time.process_time()
    if taken < steps:
        raise ValueError(f"the text ended after {taken} of {steps} steps: take fewer pairs")
    return copies


def warm_up(step, batch):
    """Take three steps of a tf.function, which build and start all that it needs, and undo them.

    Every variable that the step uses, also an optimizer's, gets its old value back.
    """
    variables = step.get_concrete_function().variables
    values = [variable.numpy() for variable in variables]
    for _ in range(3):
        step(*batch)
    for variable, value in zip(variables, values):
        variable.assign(value)


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
        The place at which the straight line between two losses meets the level; infinite if the curve stays above it.
    """
    for k, loss in enumerate(losses):
        if loss <= level:
            return np.interp(level, [loss, losses[k - 1]], [places[k], places[k - 1]])
    return np.inf


# ---- Drawings


def draw_curves(curves, pairs, seconds, level, title):
    """Draw losses against thousands of pairs, and below against seconds, and mark where each curve meets the level.

    Parameters
    ----------
    curves : dict of {str: float array [seeds, points]}
        Of each of two ways its losses; all begin before training. A colour for each way, a line for each seed.
    pairs : float array [points]
        The thousands of pairs that each point has seen.
    seconds : dict of {str: float array [seeds, points]}
    level : float
        The loss of the dotted line.
    title : str
    """
    _, (above, below) = plt.subplots(2, sharey=True, figsize=(6, 6.6), layout="constrained")
    for (name, losses), color in zip(curves.items(), (SERIAL, COLORS[0])):
        for seed, of_seed in enumerate(losses):
            for panel, places in ((above, pairs), (below, seconds[name][seed])):
                panel.plot(places, of_seed, color=color, label=None if seed else name)
                panel.plot(first_below(level, places, of_seed), level, "o", color=color)
    for panel, what in ((above, "thousand pairs"), (below, "seconds of training")):
        panel.axhline(level, ls=":", color="gray", label=f"loss {level:.2f}")
        panel.set(xlabel=what, ylabel="NCE loss, held-out pairs")
    above.set_title(title)
    above.legend()
    plt.show()
