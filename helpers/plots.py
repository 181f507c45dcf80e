"""One look for every figure and table of the course."""

import matplotlib.pyplot as plt
from IPython.display import Markdown

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
