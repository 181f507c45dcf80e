"""For lesson 01: what its steps took, of many the one that a chart draws, and the drawing of its figures."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, gantt

PARTS = {
    "forward": COLORS[0], "backward": COLORS[1], "update": COLORS[2], "exchange": COLORS[3], "wait": "#dddddd",
}  # fmt: skip


def warm_steps(steps_of_ranks, skip=2):
    """The steps after the first ones: of each its spans, rank by rank, on a clock that begins with the step.

    steps_of_ranks: of each rank its steps, each a list of (what, begin, end). skip: how many steps warm up.
    """
    steps = []
    for step in list(zip(*steps_of_ranks))[skip:]:
        zero = min(spans[0][1] for spans in step)
        steps.append([[(what, begin - zero, end - zero) for what, begin, end in spans] for spans in step])
    return steps


def median_step(steps):
    """One step for `gantt`: each bar goes from the median of its beginnings to the median of its ends.

    steps: those of `warm_steps`, all with the same bars in the same order.
    """
    median = []
    for steps_of_rank in zip(*steps):
        bars = []
        for same_bar in zip(*steps_of_rank):
            whats, begins, ends = zip(*same_bar)
            bars.append((whats[0], np.median(begins), np.median(ends)))
        median.append(bars)
    return median


def length(step):
    """Milliseconds until the last rank is done with a step of `warm_steps` or `median_step`."""
    return 1e3 * max(spans[-1][2] for spans in step)


def speed_ups(steps, others):
    """How many times faster `others` are, turn by turn: an array."""
    return np.array([length(step) / length(other) for step, other in zip(steps, others)])


def bar(spans, what):
    """Milliseconds of a rank's bar; 0 if it has none of this name."""
    return sum(1e3 * (end - begin) for name, begin, end in spans if name == what)


def computing(spans):
    """Milliseconds of a rank's forward and backward."""
    return bar(spans, "forward") + bar(spans, "backward")


def idle(step):
    """Of each rank the share of a step in which it neither computes nor sends."""
    busy = [sum(bar(spans, what) for what in PARTS if what != "wait") for spans in step]
    return [1 - its_busy / length(step) for its_busy in busy]


def draw_amdahl(speed_up, serial_parts):
    """Draw the speed-up against the number of ranks, up to 64, a curve for each serial part.

    speed_up: function of a serial part and a number of ranks, or an array of them. serial_parts: at most four.
    """
    counts = 2 ** np.arange(7)
    _, ax = plt.subplots(figsize=(6, 4))
    for color, serial in zip(COLORS, serial_parts):
        ax.plot(counts, speed_up(serial, counts), "o-", color=color, label=f"{serial:.0%} serial")
    ax.plot(counts, counts, ":", color="gray", label="perfect")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set(xlabel="ranks", xticks=counts, xticklabels=counts)
    ax.set(ylabel="times faster", yticks=counts, yticklabels=counts)
    *first, last = [f"{speed_up(serial, 64):.0f}" for serial in serial_parts]
    ax.set_title(f"64 ranks: {', '.join(first)} or {last} times faster")
    ax.legend()


def draw_ratios(ratios):
    """Draw of each case the median of its turns as a dot, their range as a line, and where one rank stands.

    ratios: {(width, "two ranks" or "all cores"): array of the turns}.
    """
    _, ax = plt.subplots(figsize=(6, 2.6))
    for row, ((_, who), turns) in enumerate(ratios.items()):
        color = COLORS[0] if who == "two ranks" else SERIAL
        ax.plot([min(turns), max(turns)], [row, row], color=color, lw=4, alpha=0.4)
        ax.plot(np.median(turns), row, "o", color=color)
        ax.annotate(f"{np.median(turns):.2f}", (np.median(turns), row), (0, 6), textcoords="offset points", ha="center")
    ax.axvline(1, color="k", ls="--", lw=1)
    ax.set(yticks=range(len(ratios)), yticklabels=[f"width {width:,}: {who}" for width, who in ratios])
    found = [f"{np.median(turns):.2f} x at {width:,}" for (width, who), turns in ratios.items() if who == "two ranks"]
    ax.set(title=f"Two ranks over one: {', '.join(found)}")
    ax.set(xlabel="times as fast as one rank", ylim=(len(ratios) - 0.5, -0.8))
    ax.set_xlim(left=0)


def draw_gantts(charts, title=None):
    """Draw Gantt charts below each other, on one axis of time; returns their axes.

    charts: {its title: of each rank its spans, as of `median_step`}. title: the finding, above all of them.
    """
    heights = [len(step) for step in charts.values()]
    figure, axes = plt.subplots(
        len(charts), figsize=(6, 1 + sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    for ax, (name, step) in zip(axes[:, 0], charts.items()):
        gantt(ax, step, PARTS, legend=ax is axes[-1, 0])
        ax.set(title=name, xlabel="ms" if ax is axes[-1, 0] else "")
    figure.suptitle(title, x=0.02, ha="left")
    return axes[:, 0]


def draw_lag(loss, batch, rates):
    """Draw the losses of one process (a line) and of two ranks (dots), against examples and against steps.

    loss: {(batch, how many train, rate): the loss before each step, and at the end}. rates: two.
    """
    figure, axes = plt.subplots(1, 2, figsize=(6, 3.6), sharey=True)
    for n, look, who in ((1, "-", "one process"), (2, "o", "two ranks")):
        for color, rate in zip(COLORS, rates):
            losses = loss[batch, n, rate]
            steps = np.arange(len(losses))
            style = dict(color=color, markersize=4, markevery=2)
            axes[0].plot(batch * n * steps / 1_000, losses, look, label=f"{who}, rate {rate}", **style)
            axes[1].plot(steps, losses, look, **style)
    axes[0].set(xlabel="thousand examples", ylabel="held-out loss")
    axes[0].set_title("Same examples: two ranks lag", fontsize=11)
    axes[1].set_title("Same steps: almost level", fontsize=11)
    axes[1].set(xlabel="steps")
    figure.legend(loc="outside lower center", ncols=2)
