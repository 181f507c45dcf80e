"""The harness of lesson 09: a training loop with a clock, the time of a step's parts, and their drawings."""

import time
from itertools import islice
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from helpers.plots import COLORS, SERIAL

PARTS = {"batch": COLORS[3], "gradients": SERIAL, "exchange": COLORS[1], "update": COLORS[2]}

# ---- Clocks


class Copy(NamedTuple):
    """A run so far: its steps, its seconds, how many cores the process kept busy, and its tables as arrays."""

    steps: int
    seconds: float
    cores: float
    tables: list


def timed_loop(step, tables, batches, steps):
    """Train, and after each quarter of the steps stop the clock and copy the tables.

    Returns
    -------
    list of Copy
        Four copies; the clock and `cores`, the processor's seconds per second, stand still while a table is copied.

    Raises
    ------
    ValueError
        If the batches end before the steps.
    """
    copy_after = [steps * quarter // 4 for quarter in range(1, 5)]
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


def time_parts(parts, steps, warm_up=5):
    """Measure the parts of a step, each of which takes what the one before returned: {part: ms}.

    parts: {part: function}. warm_up: the first steps, which build graphs, do not count. The times are medians, but that
    of "batch" is a mean: pairs are made a block of text at a time, so only one batch in many takes long.
    """
    spent = {part: [] for part in parts}
    for _ in range(warm_up + steps):
        value = None
        for part, do in parts.items():
            started = time.perf_counter()
            value = do(value)
            spent[part].append(1000 * (time.perf_counter() - started))
    typical = {part: np.mean if part == "batch" else np.median for part in parts}
    return {part: float(typical[part](ms[warm_up:])) for part, ms in spent.items()}


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

    curves, seconds: of each of three ways its losses and times, [seed, point]. level: the loss of the dotted line.
    """
    seeds = len(next(iter(curves.values())))
    figure, panels = plt.subplots(seeds, sharex=True, sharey=True, figsize=(6, 7), layout="constrained")
    for seed, panel in enumerate(panels):
        for name, color, line in zip(curves, (SERIAL, COLORS[2], COLORS[0]), (".-", ".--", ".-")):
            panel.plot(seconds[name][seed], curves[name][seed], line, color=color, label=name)
        panel.axhline(level, ls=":", color="gray", label=f"loss {level:.3f}")
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
    plt.xlabel("ms of a step")
    plt.title(title)
    seen = [part for part in PARTS if any(parts.get(part, 0) >= 0.1 for parts in parts_of_ways.values())]
    patches = [Patch(color=PARTS[part], label=part) for part in seen]
    plt.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.45, -0.3), ncols=len(seen))
    plt.show()


def draw_speedup(batches, speedups, title):
    """Draw the pairs per second of two ranks over those of one, against the batch of a rank: {name: speed-ups}."""
    plt.figure(figsize=(6, 3.4))
    for (name, speedup), color in zip(speedups.items(), (COLORS[0], COLORS[1])):
        plt.plot(batches, speedup, "o-", color=color, label=name)
    plt.axhline(1, ls=":", color="gray", label="as fast as one")
    plt.xscale("log")
    plt.xticks(batches, [f"{batch:,}" for batch in batches])
    plt.minorticks_off()
    plt.ylim(0, 2)
    plt.xlabel("pairs in the batch of a rank")
    plt.ylabel("speed-up")
    plt.title(title)
    plt.legend(loc="upper center", bbox_to_anchor=(0.45, -0.25), ncols=len(speedups) + 1)
    plt.show()
