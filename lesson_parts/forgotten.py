"""The figure of lesson 21: what a run loses if a part of its state is forgotten."""

import matplotlib.pyplot as plt

from helpers.plots import COLORS, SERIAL, use_style


def draw_losses(steps, losses, failures, harmful):
    """Draw the held-out loss along the steps, a line for each run, with the failures marked, in two panels.

    The upper panel has the control and the first harmful part, the lower one, on a finer scale, all but that part.

    Parameters
    ----------
    steps : sequence of int
        Where the losses were measured, after so many steps.
    losses : dict of str to list of list of float
        What is forgotten, and for each seed the losses at these steps. The first one is the control, which forgets
        nothing.
    failures : sequence of int
        After so many steps.
    harmful : sequence of two str
        Those that end above the control with every seed; the title says by how much.
    """
    use_style()
    _, panels = plt.subplots(2, sharex=True, figsize=(5, 6.4))
    control = next(iter(losses))
    for (part, curves), color in zip(losses.items(), COLORS):
        for ax in panels if part == control else [panels[0 if part == harmful[0] else 1]]:
            for number, curve in enumerate(curves):
                label = None if number else part  # in the legend once
                ax.plot(steps, curve, marker=".", ms=5, lw=1.2, color=color, label=label)
    for ax in panels:
        for failure in failures:
            ax.axvline(failure, color=SERIAL, lw=1, ls=":", label="failure" if failure == failures[0] else None)
        ax.set_ylabel("held-out loss, lower is better")
        ax.legend(loc="upper left")
    low, high = min(curve[-1] for curve in losses[control]), max(curve[-1] for curve in losses[control])
    above = []
    for part in harmful:
        ends = [curve[-1] for curve in losses[part]]
        above.append(f"{part} by {min(ends) - high:.1f} to {max(ends) - low:.1f}")
    lines = ",\n".join(above)
    panels[0].set_title(f"No error, but after {len(failures)} failures the loss is higher:\n{lines}")
    panels[1].set_xlabel("steps since the file (each line is one of two seeds)")
    plt.show()
