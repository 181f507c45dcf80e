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


def low_high(values, digits=2):
    """Format the smallest and the largest, as "0.49 to 0.60"; digits behind the point, and never "-0"."""
    return f"{min(values):z.{digits}f} to {max(values):z.{digits}f}"


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
