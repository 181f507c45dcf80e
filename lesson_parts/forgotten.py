"""The figure of lesson 21: what a run loses if a part of its state is forgotten."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, use_style


def draw_losses(steps, losses, failures, worse):
    """Draw the held-out loss along the steps, a line for each run, with the failures marked.

    Parameters
    ----------
    steps : list of int
        Where the losses were measured, after so many steps.
    losses : dict of str to list of list of float
        What is forgotten, and for each seed the losses at these steps. The first one is the control, which forgets
        nothing.
    failures : list of int
        After so many steps.
    worse : list of str
        Those that end above the control with every seed; the title says by how much, median from median.
    """
    use_style()
    _, ax = plt.subplots(figsize=(5, 4.4))
    for (part, curves), color in zip(losses.items(), COLORS):
        for number, curve in enumerate(curves):
            ax.plot(steps, curve, ".-", ms=5, lw=1.2, color=color, label=None if number else part)
    for failure in failures:
        ax.axvline(failure, color=SERIAL, lw=1, ls=":", label=None if failure else "failure")
    ends = {part: np.median([curve[-1] for curve in curves]) for part, curves in losses.items()}
    control = next(iter(ends.values()))
    above = [f"{part} by {ends[part] - control:.2f}" for part in worse]
    ax.set_title(f"No error, but after {len(failures)} failures the loss is higher:\n{', '.join(above)}")
    ax.set(xlabel="steps since the file", ylabel="held-out loss, lower is better")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=3, frameon=False, columnspacing=1)
    plt.show()
