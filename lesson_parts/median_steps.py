"""For lesson 01: ways of doing something take turns; of many steps the one of median length; the figures."""

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython

from helpers.plots import COLORS, SERIAL, gantt, low_high

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


def gain_in_words(some, others):
    """Say whether `others` are "Faster" in each turn, "Slower" in each, or neither: "No sure gain"."""
    if min(some / others) > 1:
        return "Faster"
    return "Slower" if max(some / others) < 1 else "No sure gain"


# ---- Steps: of each rank its spans, (what, begin, end) in seconds of one clock


def median_turn(steps):
    """Of an odd number of steps, turn by turn, the number of the turn whose step has the median length."""
    return sorted(range(len(steps)), key=lambda turn: length(steps[turn]))[len(steps) // 2]


def length(step):
    """Milliseconds from the first beginning until the last rank is done."""
    return 1e3 * (max(spans[-1][2] for spans in step) - min(spans[0][1] for spans in step))


def waits_apart(step):
    """Cut the exchange of each rank in two: "wait" until the last rank begins it, and "exchange" from then on."""
    last = max(begin for begin, _ in exchanges(step))
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


def exchanges(step):
    """Of each rank when its exchange began and ended: a list of (begin, end), in seconds of one clock."""
    return [(begin, end) for spans in step for what, begin, end in spans if what == "exchange"]


def bar(spans, what):
    """Milliseconds of a rank's bar; 0 if it has none of this name."""
    return sum(1e3 * (end - begin) for name, begin, end in spans if name == what)


def idle(step):
    """Of each rank the share of a step in which it neither computes nor sends."""
    busy = [sum(bar(spans, what) for what in PARTS if what != "wait") for spans in step]
    return [1 - its_busy / length(step) for its_busy in busy]


def computing_ms(spans):
    """Milliseconds that a rank's forward and backward take together."""
    return bar(spans, "forward") + bar(spans, "backward")


def lost_by_halves(whole, half, both, turn):
    """Where the time goes that half of one rank's step leaves out, when two ranks take half of a batch each.

    Parameters
    ----------
    whole, half, both : lists, turn by turn, of a step
        Rank 0 alone with a whole batch; alone with half of it; both ranks, after `waits_apart`.
    turn : int
        The number of the turn that is drawn.

    Returns
    -------
    list of (str, str, str)
        What; its milliseconds in the drawn turn; its smallest and largest ones over the turns. In each turn the last
        line is the sum of the others. The rank that waits is the one whose exchange has to wait for the other's.
    """
    of_whole, of_half = [np.array([computing_ms(step[0]) for step in steps]) for steps in (whole, half)]
    waiting = [max(step, key=lambda spans: bar(spans, "wait")) for step in both]
    computes = np.array([computing_ms(spans) for spans in waiting])
    waits = np.array([bar(spans, "wait") for spans in waiting])
    until_exchange = np.array([1e3 * (exchanges(step)[0][0] - min(spans[0][1] for spans in step)) for step in both])
    update = last_updates(both)
    two = np.array([length(step) for step in both])
    parts = {
        "one rank's forward and backward, halved": of_whole / 2,
        "+ half a batch, alone, takes more than half of that": of_half - of_whole / 2,
        "+ the rank that waits computes longer than alone": computes - of_half,
        "+ it begins later than the other (white)": until_exchange - computes - waits,
        "+ it waits for the other (grey)": waits,
        "+ exchange": two - until_exchange - update,
        "+ update": update,
        "**= a step of two ranks**": two,
    }
    return in_rows(parts, turn)


def lost_by_layers(whole, split, turn):
    """Where the time goes that two ranks with half of the layers each take beyond one rank's step.

    whole, split: lists, turn by turn, of a step: of rank 0 with all layers; of both ranks. turn: the number of the
    turn that is drawn. Returns rows as `lost_by_halves` does.
    """
    one, two = [np.array([length(step) for step in steps]) for steps in (whole, split)]
    of_one, of_two = [np.array([sum(map(computing_ms, step)) for step in steps]) for steps in (whole, split)]
    update = last_updates(split)
    parts = {
        "one rank's step": one,
        "+ the same layers compute longer on two ranks": of_two - of_one,
        "+ two messages": two - of_two - update,
        "+ update, of half of the layers": update - (one - of_one),
        "**= a step with divided layers**": two,
    }
    return in_rows(parts, turn)


def last_updates(steps):
    """Of each step the milliseconds of the update of the rank that is done last: an array."""
    return np.array([bar(max(step, key=lambda spans: spans[-1][2]), "update") for step in steps])


def in_rows(parts, turn):
    """Rows of a table from {what: milliseconds turn by turn}: what, its value in this turn, its range."""
    return [(what, f"{ms[turn]:z.1f}", low_high(ms, 1)) for what, ms in parts.items()]


# ---- Figures


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


def draw_progress(goal, losses, seconds):
    """Draw held-out losses against steps, and beside them the seconds to a goal, a row with its range for each way.

    Parameters
    ----------
    goal : float
        A loss that all of them reach.
    losses : dict of str to list
        {who: its loss before each step and at the end}: one process, then two ranks.
    seconds : dict of str to array
        {who: its seconds to the goal, turn by turn}; the last is of two ranks.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(6, 3.4), width_ratios=(3, 2.4))
    reached = []
    for (who, of_who), color in zip(losses.items(), (SERIAL, COLORS[0])):
        reached.append(np.argmax(np.array(of_who) <= goal))
        left.plot(of_who, color=color, label=who)
        left.plot(reached[-1], goal, "o", color=color)
    ticks = [0.03, 0.06, 0.12, 0.24]
    left.set(yscale="log", xlabel="steps", ylabel="held-out loss")
    left.set_yticks(ticks, labels=ticks)
    left.minorticks_off()
    left.axhline(goal, color="k", ls=":", lw=1)
    left.set_xlim(left=0)
    left.legend(loc="upper right")
    left.set_title(f"{reached[1]} steps instead of {reached[0]}", fontsize=11)
    for row, (of_turns, color) in enumerate(zip(seconds.values(), [SERIAL] * (len(seconds) - 1) + [COLORS[0]])):
        right.plot([min(of_turns), max(of_turns)], [row, row], color=color, lw=3)
        right.plot(np.median(of_turns), row, "|", color=color, ms=13, mew=3)
        right.annotate(f"{np.median(of_turns):.2f} s", (np.median(of_turns), row - 0.17), ha="center", fontsize=10)
    *singles, two = seconds.values()
    fastest = min(singles, key=np.median)
    right.set(xlabel="seconds", yticks=range(len(seconds)), yticklabels=seconds, ylim=(len(seconds) - 0.5, -0.6))
    right.set_xlim(left=0)
    right.set_title(f"{len(two)} turns: median, range", fontsize=11)
    finding = f"{gain_in_words(fastest, two)} to a loss of {goal:.4f}: {gain_and_range(fastest, two)} x as fast"
    right.figure.suptitle(finding, x=0.02, ha="left")
