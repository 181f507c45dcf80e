"""The figure of lesson 21: what a run loses if a part of its state is forgotten."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, use_style


def draw_losses(steps, losses, failures, worse):
    """Draw the held-out loss along the steps, a line for each run, with the failures marked, in two panels.

    The upper panel has the first of `worse` and the control, the lower one, on a scale of its own, all but that.

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
    _, panels = plt.subplots(2, sharex=True, figsize=(5, 6))
    control = next(iter(losses))
    lines = {}
    for (part, curves), color in zip(losses.items(), COLORS):
        here = [panels[0]] if part == worse[0] else list(panels) if part == control else [panels[1]]
        for ax in here:
            for curve in curves:
                (lines[part],) = ax.plot(steps, curve, ".-", ms=5, lw=1.2, color=color)
    for ax in panels:
        for failure in failures:
            lines["failure"] = ax.axvline(failure, color=SERIAL, lw=1, ls=":")
        ax.set_ylabel("held-out loss, lower is better")
    ends = {part: np.median([curve[-1] for curve in curves]) for part, curves in losses.items()}
    above = [f"{part} by {ends[part] - ends[control]:.2f}" for part in worse]
    panels[0].set_title(f"No error, but after {len(failures)} failures the loss is higher:\n{', '.join(above)}")
    panels[1].set_xlabel("steps since the file (each line is one of two seeds)")
    names = dict(loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=3, frameon=False, columnspacing=1)
    panels[1].legend(lines.values(), lines.keys(), **names)
    plt.show()
