"""The figure of lesson 21: what a run loses if a part of its state is forgotten."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, use_style


def draw_losses(losses, file_loss, worse):
    """Draw a bar from the loss of the file to the median of each run, with a dot for each seed.

    Parameters
    ----------
    losses : dict of str to list of float
        What is forgotten, and the loss at the end with each seed. The first one is the control, which forgets nothing.
    file_loss : float
        Where all begin.
    worse : list of str
        Those that end worse than the file with every seed, in another colour.
    """
    use_style()
    _, ax = plt.subplots(figsize=(5, 3.5))
    labels = []
    for row, (part, found) in enumerate(losses.items()):
        middle = np.median(found)
        labels.append(f"{part}: {middle:.2f}")
        color = COLORS[1] if part in worse else COLORS[0]
        ax.barh(row, middle - file_loss, left=file_loss, color=color)
        ax.plot(found, [row] * len(found), "ko", ms=3)
    ax.axvline(file_loss, color="k", lw=1)
    ax.text(file_loss, -0.55, f"  the file: {file_loss:.2f}", va="bottom")
    every = [loss for found in losses.values() for loss in found]
    ax.set(yticks=range(len(losses)), yticklabels=labels, ylim=(len(losses) - 0.4, -1.2))
    ax.set(xlim=(min(every) - 0.1, max(every) + 0.1))
    ax.set(xlabel=f"held-out loss 60 steps later, lower is better\n(bar: median, dots: {len(found)} seeds)")
    ax.grid(visible=False, axis="y")
    what = f"{len(worse)} of {len(losses) - 1} ways to forget"
    ax.set_title(f"No error, but {what}\nleave the run worse than its file")
    plt.show()
