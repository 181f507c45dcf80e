"""For lesson 28: what two ranks gain over their rivals, turn by turn."""

import numpy as np

from helpers.plots import COLORS, SERIAL

QUARTILES = [0.25, 0.5, 0.75]
COLOR_OF = {"gains": COLORS[2], "open": SERIAL, "loses": COLORS[1]}


def draw_gains(axes, gains, verdict):
    """Draw each turn as a dot, the quartiles as a bar, the median as a tick, and a line at 1.

    Right of the line two ranks do more. The rows of one model stand together, and the verdict stands at the right.

    Parameters
    ----------
    axes : sequence of matplotlib.axes.Axes
        One for each rival; they share y.
    gains : dict of (str, int) to dict
        {(model, images): {rival: the ratios of its turns}}, from top to bottom; each case has the same rivals.
    verdict : function
        Ratios -> "gains", "open" or "loses".
    """
    models = list(dict.fromkeys(model for model, _ in gains))
    heights = [row + 0.7 * models.index(model) for row, (model, _) in enumerate(gains)]
    rivals = list(next(iter(gains.values())))
    for axis, rival in zip(axes, rivals):
        for height, ratios_of in zip(heights, gains.values()):
            ratios = ratios_of[rival]
            low, middle, high = np.quantile(ratios, QUARTILES)
            word = verdict(ratios)
            color = COLOR_OF[word]
            axis.plot(ratios, [height] * len(ratios), ls="", marker="o", ms=3.5, alpha=0.5, color=color)
            axis.plot([low, high], [height, height], lw=7, alpha=0.4, solid_capstyle="butt", color=color)
            axis.plot(middle, height, ls="", marker="|", ms=14, mew=3, color=color)
            place = axis.get_yaxis_transform()
            axis.text(1.03, height, word, color=color, va="center", transform=place)
        axis.axvline(1, color="k", ls="--", lw=1)
        axis.set(title=f"2 ranks / {rival}", xlabel="times as many\nexamples a second")
        axis.set_xlim(left=0)
    axes[0].set(yticks=heights, yticklabels=[f"{model}, {images}" for model, images in gains])
    axes[0].invert_yaxis()
