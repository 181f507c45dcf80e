"""For lesson 01: ways of doing something take turns; of many steps the one of median length; the figures."""

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython

from helpers.plots import COLORS, SERIAL, gantt

PARTS = {
    "forward": COLORS[0], "backward": COLORS[1], "update": COLORS[2], "exchange": COLORS[3], "wait": "#dddddd",
}  # fmt: skip


# ---- Turns


def turn_by_turn(ranks, turns, here, rank_0, both, warm=0):
    """Let ways of doing something take turns, so that all of them meet the same state of the machine.

    Parameters
    ----------
    ranks : Ranks
        They have imported `hvd` and `tf`.
    turns : int
    here, rank_0, both : dict of str to str
        {way: a line of Python}, evaluated in each turn: in this notebook; on rank 0, while the others rest; on all
        ranks, which begin together.
    warm : int
        So many turns before, which do not count.

    Returns
    -------
    dict of str to list
        {way: turn by turn, of each process that took part what its line returned}.
    """
    found = {way: [] for way in [*here, *rank_0, *both]}
    on_ranks = {way: f"({line}) if hvd.rank() == 0 else None" for way, line in rank_0.items()}
    on_ranks |= {way: f"({line})" for way, line in both.items()}
    for _ in range(warm + turns):
        for way, line in here.items():
            found[way].append([get_ipython().ev(line)])
        for way, line in on_ranks.items():
            ranks.view.execute(f"hvd.allreduce(tf.zeros(1))\nof_turn = {line}", block=True)
            found[way].append(ranks.view["of_turn"][: 1 if way in rank_0 else None])
    return {way: of_turns[warm:] for way, of_turns in found.items()}


def turns_in_ms(turns):
    """Of each turn the milliseconds until its last process was done: an array.

    turns: of one way of `turn_by_turn`, of each process the seconds of a step, or its spans (what, begin, end).
    """
    return np.array([length(turn) if isinstance(turn[0], list) else 1e3 * max(turn) for turn in turns])


def gain_and_range(some, others):
    """Format how many times as fast `others` are: the quotient of the medians, and its range over the turns.

    The quotient of the medians lies between the smallest and the largest quotient of a turn.

    some, others: arrays, times turn by turn.
    """
    ratios = some / others
    return f"{np.median(some) / np.median(others):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


# ---- Steps: of each rank its spans, (what, begin, end) in seconds of one clock


def median_step(steps):
    """Of an odd number of steps the one of median length."""
    return sorted(steps, key=length)[len(steps) // 2]


def length(step):
    """Milliseconds from the first beginning until the last rank is done."""
    return 1e3 * (max(spans[-1][2] for spans in step) - min(spans[0][1] for spans in step))


def waits_apart(step):
    """Cut the exchange of each rank in two: "wait" until the last rank begins it, and "exchange" from then on."""
    last = max(begin for spans in step for what, begin, _ in spans if what == "exchange")
    apart = []
    for spans in step:
        cut = []
        for what, begin, end in spans:
            if what == "exchange":
                cut.append(("wait", begin, last))
                begin = last
            cut.append((what, begin, end))
        apart.append(cut)
    return apart


def bar(spans, what):
    """Milliseconds of a rank's bar; 0 if it has none of this name."""
    return sum(1e3 * (end - begin) for name, begin, end in spans if name == what)


def idle(step):
    """Of each rank the share of a step in which it neither computes nor sends."""
    busy = [sum(bar(spans, what) for what in PARTS if what != "wait") for spans in step]
    return [1 - its_busy / length(step) for its_busy in busy]


# ---- Figures


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
    ax.set(ylabel="times as fast", yticks=counts, yticklabels=counts)
    *first, last = [f"{speed_up(serial, 64):.1f}" for serial in serial_parts]
    ax.set_title(f"64 ranks: {', '.join(first)} or {last} times as fast")
    ax.legend()


def draw_gantts(charts, title=None):
    """Draw Gantt charts below each other, on one axis of time; returns their axes.

    charts: {its title: of each rank its spans}. title: the finding, above all of them.
    """
    heights = [len(step) for step in charts.values()]
    figure, axes = plt.subplots(
        len(charts), figsize=(6, 1 + sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    for ax, (name, step) in zip(axes[:, 0], charts.items()):
        gantt(ax, step, PARTS, legend=ax is axes[-1, 0])
        ax.set(title=name, xlabel="ms" if ax is axes[-1, 0] else "")
    axes[-1, 0].set_xlim(left=0)  # of the shared axis, when all charts are in it
    figure.suptitle(title, x=0.02, ha="left")
    return axes[:, 0]


def draw_progress(goal, curves):
    """Draw held-out losses against steps and against seconds, with a dot where each reaches the goal.

    Parameters
    ----------
    goal : float
        A loss that all of them reach.
    curves : dict of str to (list, array)
        {who: (its loss before each step and at the end; milliseconds of a step, turn by turn)}; the first is the rival
        that the title names, the last is of two ranks.
    """
    figure, axes = plt.subplots(1, 2, figsize=(6, 3.8), sharey=True)
    steps_of, seconds_of = [], []
    looks = zip((COLORS[1], SERIAL, COLORS[0]), ("-", "--", "-"))
    for (who, (losses, ms)), (color, style) in zip(curves.items(), looks):
        steps = np.arange(len(losses))
        reached = np.argmax(np.array(losses) <= goal)
        seconds = reached * np.median(ms) / 1e3
        steps_of.append(reached)
        seconds_of.append(seconds)
        axes[0].plot(steps, losses, style, color=color)
        axes[0].plot(reached, goal, "o", color=color)
        axes[1].plot(steps * np.median(ms) / 1e3, losses, style, color=color, label=f"{who}: {seconds:.2f} s")
        axes[1].plot(seconds, goal, "o", color=color)
        axes[1].plot(reached * np.array([min(ms), max(ms)]) / 1e3, [goal, goal], color=color, lw=5, alpha=0.4)
    ticks = [0.03, 0.06, 0.12, 0.24]
    axes[0].set(yscale="log", xlabel="steps", ylabel="held-out loss")
    axes[0].set_yticks(ticks, labels=ticks)
    axes[0].minorticks_off()
    axes[1].set_xlabel("seconds")
    for ax in axes:
        ax.axhline(goal, color="k", ls=":", lw=1)
        ax.set_xlim(left=0)
    axes[0].set_title(f"{steps_of[-1]} steps instead of {steps_of[0]}", fontsize=11)
    axes[1].set_title(f"{seconds_of[-1]:.2f} s instead of {seconds_of[0]:.2f} s", fontsize=11)
    figure.suptitle(f"Two ranks against {[*curves][0]}, to a loss of {goal:.4f}:", x=0.02, ha="left")
    figure.legend(loc="outside lower center", ncols=len(curves))
