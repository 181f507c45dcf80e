"""For lesson 28: what two ranks gain over their rivals, turn by turn."""

import numpy as np

from helpers.plots import COLORS


def draw_gains(axis, gains):
    """Draw each turn as a dot, the median as a bar, and a line at 1, right of which two ranks do more.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    gains : dict of str to dict
        {model: {rival: the ratios of its turns}}, from top to bottom; each model has the same rivals.
    """
    for row, ratios_of in enumerate(gains.values()):
        for place, (rival, ratios) in enumerate(ratios_of.items()):
            height = row + 0.3 * place - 0.15
            look = {"color": COLORS[place], "ls": ""}
            label = f"2 ranks / {rival}" if row == 0 else ""
            axis.plot(ratios, [height] * len(ratios), marker="o", ms=6, alpha=0.5, label=label, **look)
            axis.plot(np.median(ratios), height, marker="|", ms=15, mew=3, **look)
    axis.axvline(1, color="k", ls="--", lw=1)
    axis.set(yticks=range(len(gains)), yticklabels=[*gains], xlabel="times as many examples a second")
    axis.set_xlim(left=0)
    axis.invert_yaxis()
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.13), ncols=2)
