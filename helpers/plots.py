"""One look for every figure and table of the course."""

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.patches import Patch

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # rank 0 to 3; they stay apart for colour-blind readers
SERIAL = "#555555"  # whatever runs in one process


def use_style():
    """Set matplotlib's defaults for a notebook: those of course.mplstyle."""
    plt.style.use("helpers.course")


def table(columns, rows):
    """A table to be displayed, not printed: the last line of a cell, or `display(table(...))`.

    columns: a list of str. rows: of each row its cells, str or numbers, as many as columns; format floats before.
    """
    lines = [columns, ["---"] * len(columns), *rows]
    return Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))


def median_and_range(values, digits=2):
    """Format the median, with the smallest and the largest in brackets.

    Parameters
    ----------
    values : sequence of float
    digits : int
        Of each number behind the point.

    Returns
    -------
    str
        As "0.52 (0.49 to 0.60)".
    """
    numbers = np.median(values), min(values), max(values)
    return "{} ({} to {})".format(*(f"{number:.{digits}f}" for number in numbers))


def gantt(ax, spans_of_ranks, colors, legend=True):
    """Draw what each rank did when: time from left to right, in ms from the first beginning on, a bar for each rank.

    spans_of_ranks: of each rank its (what, begin, end), in seconds of one clock. colors: {what: its colour}. legend:
    whether it stands below.
    """
    zero = min(begin for spans in spans_of_ranks for _, begin, _ in spans)
    for rank, spans in enumerate(spans_of_ranks):
        for what, begin, end in spans:
            ax.barh(rank, 1e3 * (end - begin), left=1e3 * (begin - zero), color=colors[what])
    ranks = range(len(spans_of_ranks))
    ax.set(xlabel="ms", yticks=ranks, yticklabels=[f"rank {rank}" for rank in ranks])
    ax.invert_yaxis()
    ax.grid(False)
    if legend:
        drawn = {what for spans in spans_of_ranks for what, *_ in spans}
        patches = [Patch(color=color, label=what) for what, color in colors.items() if what in drawn]
        ax.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=len(patches), frameon=False)


def stacked_bars(ax, bars, parts, colors):
    """Draw a bar of several parts for each name, its sum at its end, and what the parts are below.

    bars: {name: its sizes, as many as parts; nan is left out}. parts: their names. colors: theirs.
    """
    for name, sizes in bars.items():
        left = 0
        for size, color in zip(np.nan_to_num(sizes), colors):
            ax.barh(name, size, left=left, color=color)
            left += size
        ax.text(left, name, f" {left:.0f}", va="center")
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(False)
    patches = [Patch(color=color, label=part) for part, color in zip(parts, colors)]
    ax.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=len(parts), frameon=False)


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


def cells(ax, row, left, values, colors):
    """Draw the numbers of a rank as a row of boxes.

    ax: of matplotlib. row: 0 for the topmost. left: where the row begins. values: the numbers. colors: {number: its
    colour}; the others are grey.
    """
    for place, value in enumerate(values):
        color = colors.get(value, "#dddddd")
        corner = left + place, -row
        ax.add_patch(plt.Rectangle(corner, 0.92, 0.8, color=color, linewidth=0))
        shade = "white" if value in colors else "black"
        ax.text(left + place + 0.46, 0.4 - row, f"{value:g}", color=shade, ha="center", va="center", size=8)


def draw_collectives(panels):
    """Draw what ranks had and what they got, a row for each rank; a number has the colour of the one rank that had it.

    panels: {title: (what each rank had, what each rank got)}, of each rank a list of numbers.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)  # the last row may have a single panel
    _, axes = plt.subplots(rows, columns, squeeze=False, figsize=(3.4 * columns, 1.9 * rows))
    for ax in axes.flat:
        ax.axis("off")
    for ax, (title, (before, after)) in zip(axes.flat, panels.items()):
        _draw_collective(ax, title, before, after)
    plt.show()


def _draw_collective(ax, title, before, after):
    owners = {value: [rank for rank, row in enumerate(before) if value in row] for row in before for value in row}
    colors = {value: COLORS[who[0]] for value, who in owners.items() if len(who) == 1}
    right = max(map(len, before)) + 1
    for row in range(len(before)):
        ax.text(-0.1, 0.4 - row, f"rank {row} ", ha="right", va="center", size=8)
        cells(ax, row, 0, before[row], colors)
        cells(ax, row, right, after[row], colors)
    ax.text(right - 0.54, 1.1 - len(before) / 2, "→", ha="center", va="center")
    width = right + max(map(len, after))
    ax.set(title=title, xlim=(0, width + 0.8), ylim=(0.9 - len(before), 0.9))


def draw_changing_ranks(reports, bands, title):
    """Draw loss and steps per second of a run whose number of ranks changes, and when it stood still.

    Parameters
    ----------
    reports : list of dict
        Of one rank, in the order of time: each has "time" and "seconds" (of a step), "loss" and "size" (ranks).
    bands : list of (str, float, float)
        Of each standstill the word for it, and when it began and ended, in seconds of the clock of "time".
    title : str
    """
    zero = reports[0]["time"]
    figure, axes = plt.subplots(2, sharex=True, figsize=(5.4, 4.6), height_ratios=[3, 2])
    above, below = axes
    for size in sorted({report["size"] for report in reports}):
        of_size = [report for report in reports if report["size"] == size]
        times = [report["time"] - zero for report in of_size]
        name = "1 rank" if size == 1 else f"{size} ranks"
        above.plot(times, [report["loss"] for report in of_size], ".", ms=4, color=COLORS[size], label=name)
        below.plot(times, [1 / report["seconds"] for report in of_size], ".", ms=4, color=COLORS[size])
    for word, begin, end in bands:
        for axis in axes:
            axis.axvspan(begin - zero, end - zero, color=SERIAL, alpha=0.3, lw=0.5)
        middle = (begin + end) / 2 - zero
        said = f"{word}\n{end - begin:.1f} s"
        above.text(middle, 0.99, said, ha="center", va="top", transform=above.get_xaxis_transform())
    above.margins(y=0.3)  # room for these words
    figure.legend(loc="outside lower center", ncols=3, markerscale=3)
    above.set(ylabel="NCE loss", title=title)
    below.set(ylabel="steps/s", xlabel="seconds", ylim=(0, None))
    plt.show()
