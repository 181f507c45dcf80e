"""The figure of lesson 21: what a run loses if a part of its state is forgotten."""

import matplotlib.pyplot as plt

from helpers.plots import COLORS, SERIAL, use_style


def draw_losses(steps, losses, failures, harmful):
    """Draw the held-out loss along the steps, a line for each run, with the failures marked, in two panels.

    The lower panel, on a scale of its own, has what ends near the control, the upper one the rest and the control. What
    begins with the same word has the same colour.

    Parameters
    ----------
    steps : list of int
        Where the losses were measured, after so many steps.
    losses : dict of str to list of list of float
        What is forgotten, and for each seed the losses at these steps. The first one is the control, which forgets
        nothing.
    failures : list of int
        After so many steps.
    harmful : sequence of str
        Those that end above the control with every seed; the title says by how much for the first and the last of them.
        All but the last are in the upper panel alone.
    """
    use_style()
    _, panels = plt.subplots(2, sharex=True, figsize=(5, 6.4))
    control = next(iter(losses))
    families = list(dict.fromkeys(part.split()[0] for part in losses))
    seen = set()
    for part, curves in losses.items():
        family = part.split()[0]
        style = "--" if family in seen else "-"
        color = COLORS[families.index(family)]
        seen.add(family)
        for ax in panels if part == control else [panels[0 if part in harmful[:-1] else 1]]:
            for number, curve in enumerate(curves):
                label = None if number else part  # in the legend once
                ax.plot(steps, curve, style, marker=".", ms=5, lw=1.2, color=color, label=label)
    for ax in panels:
        for failure in failures:
            ax.axvline(failure, color=SERIAL, lw=1, ls=":", label="failure" if failure == failures[0] else None)
        ax.set_ylabel("held-out loss, lower is better")
        ax.legend(loc="upper left")
    low, high = min(curve[-1] for curve in losses[control]), max(curve[-1] for curve in losses[control])
    above = []
    for part in (harmful[0], harmful[-1]):
        ends = [curve[-1] for curve in losses[part]]
        above.append(f"{part} by {min(ends) - high:.1f} to {max(ends) - low:.1f}")
    lines = ",\n".join(above)
    panels[0].set_title(f"No error, but after {len(failures)} failures the loss is higher:\n{lines}")
    panels[1].set_xlabel("steps since the file (each line is one of two seeds)")
    plt.show()
