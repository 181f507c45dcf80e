"""For lessons 07 and 08: what ranks had and what they got, as rows of boxes."""

import matplotlib.pyplot as plt

from helpers.plots import COLORS


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
