"""The valley of lesson 21: how much time is lost, against how often a run is saved."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, use_style


def _first_order(interval, C, M):
    return C / interval + interval / (2 * M)


def draw_valley(share_lost, share_spent, C, M, factors):
    """Draw both shares in percent against the interval in minutes, with a dot and its percentage at each factor.

    Parameters
    ----------
    share_lost : function
        Of the interval in seconds: the share of the time that is lost, simulated.
    share_spent : function
        Of the interval, C and M: the same by the formula. While it raises NotImplementedError, that of the solution
        takes its place.
    C, M : float
        Seconds for a checkpoint, and from failure to failure. A line marks Young's interval.
    factors : sequence of float
        Times Young's interval, rising. The curve goes from the first to the last, the title names 0.5 and 2.
    """
    young = np.sqrt(2 * C * M)
    try:
        share_spent(young, C, M)
    except NotImplementedError:
        share_spent = _first_order
    use_style()
    _, ax = plt.subplots(figsize=(5, 3.8))
    intervals = young * np.geomspace(factors[0], factors[-1], 41)
    ax.plot(intervals / 60, [100 * share_lost(interval) for interval in intervals], label="simulated")
    by_formula = [100 * share_spent(interval, C, M) for interval in intervals]
    ax.plot(intervals / 60, by_formula, "--", color=SERIAL, label="formula")
    ax.axvline(young / 60, color=SERIAL, lw=1)
    ax.text(young / 60, 97, f"Young: {young / 60:.0f} min ", ha="right", va="top")
    for factor in factors:
        minutes, lost = factor * young / 60, 100 * share_lost(factor * young)
        side = {factors[0]: "right", factors[-1]: "left"}.get(factor, "center")  # beside the ends, else below
        lower = 3 if side == "center" else 0
        ax.plot(minutes, lost, "o", color=COLORS[0])
        ax.text(minutes, lost - lower, f"  {lost:.1f}%  ", ha=side, va="top" if lower else "center", color=COLORS[0])
    ticks = [factor * young / 60 for factor in factors]
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
    ax.set(xlim=(ticks[0] / 2.2, ticks[-1] * 2.2), ylim=(0, 100))
    ax.set(xlabel="minutes of work between two checkpoints", ylabel="time lost, %")
    more = [100 * (share_lost(factor * young) - share_lost(young)) for factor in (0.5, 2)]
    costs = "costs {:.0f} or {:.0f} percentage points more".format(*more)
    ax.set_title(f"The valley is flat: half or twice Young's interval\n{costs}")
    ax.legend(loc="upper right", bbox_to_anchor=(0.83, 0.97))
    plt.show()
