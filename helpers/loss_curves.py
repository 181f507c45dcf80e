"""The harness of lesson 09: a training loop with a clock, the time of a step's parts, and their drawings."""

import time
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from helpers.plots import COLORS, SERIAL

PARTS = {"batch": COLORS[3], "gradients": SERIAL, "exchange": COLORS[1], "update": COLORS[2]}

# ---- Clocks


def timed_loop(step, tables, batches, steps):
    """Train, and after each quarter of the steps stop the clock and copy the tables.

    Returns
    -------
    list of (int, float, list of array)
        Four times the steps and the seconds of training so far, and the tables.
    """
    copy_after = [steps * quarter // 4 for quarter in range(1, 5)]
    copies, seconds = [], 0.0
    started = time.perf_counter()
    for taken, (centers, contexts) in enumerate(islice(batches, steps), start=1):
        step(centers, contexts)
        if taken in copy_after:
            seconds += time.perf_counter() - started
            copies.append((taken, seconds, [table.numpy() for table in tables]))
            started = time.perf_counter()
    return copies


def time_parts(parts, steps, warm_up=5):
    """Measure the parts of a step, each of which takes what the one before returned: {part: ms, the median}.

    parts: {part: function}. warm_up: the first steps, which build graphs, do not count.
    """
    spent = {part: [] for part in parts}
    for _ in range(warm_up + steps):
        value = None
        for part, do in parts.items():
            started = time.perf_counter()
            value = do(value)
            spent[part].append(1000 * (time.perf_counter() - started))
    return {part: float(np.median(ms[warm_up:])) for part, ms in spent.items()}


def seconds_to_level(level, seconds, losses):
    """Interpolate when a curve first reaches a loss; `seconds` and `losses` begin before training."""
    k = next(k for k, loss in enumerate(losses) if loss <= level)
    return np.interp(level, [losses[k], losses[k - 1]], [seconds[k], seconds[k - 1]])


def median_and_range(values, digits):
    """Format the median, with the smallest and the largest."""
    numbers = np.median(values), min(values), max(values)
    return "{} ({} to {})".format(*(f"{number:.{digits}f}" for number in numbers))


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


def draw_curves(curves, seconds, level, title):
    """Draw losses against seconds, a panel for each seed.

    curves, seconds: of each of three ways its losses and times, [seed, point]. level: the loss of the dashed line.
    """
    seeds = len(next(iter(curves.values())))
    figure, panels = plt.subplots(seeds, sharex=True, sharey=True, figsize=(6, 7), layout="constrained")
    for seed, panel in enumerate(panels):
        for name, color in zip(curves, (SERIAL, COLORS[2], COLORS[0])):
            panel.plot(seconds[name][seed], curves[name][seed], ".-", color=color, label=name)
        panel.axhline(level, ls="--", color="gray", label=f"loss {level:.3f}")
        panel.set_ylabel(f"seed {seed}")
    panels[0].set_title(title)
    figure.supylabel("NCE loss, held-out pairs")
    panels[-1].set_xlabel("seconds of training")
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside lower center")
    plt.show()


def draw_parts(parts_of_ways, title):
    """Draw a bar for each way, of the parts of its step: {way: {part: ms}}; the parts are those of PARTS."""
    plt.figure(figsize=(6, 2.8))
    for way, parts in parts_of_ways.items():
        left = 0.0
        for part, color in PARTS.items():
            ms = parts.get(part, 0.0)
            plt.barh(way, ms, left=left, color=color)
            if ms >= 1:  # there is room for the number
                plt.text(left + ms / 2, way, f"{ms:.1f}", color="white", ha="center", va="center")
            left += ms
    plt.gca().invert_yaxis()
    plt.grid(False)
    plt.xlabel("ms of a step, median of each part")
    plt.title(title)
    patches = [Patch(color=color, label=part) for part, color in PARTS.items()]
    plt.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.45, -0.3), ncols=len(PARTS))
    plt.show()
