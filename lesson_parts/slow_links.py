"""The picture of lesson 24: speed-ups of two hosts over the bandwidth of their links."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL

LINKS = {10: "10", 100: "100", 1000: "1,000", None: "no limit"}  # Mbit/s: as it is written


def plot_speed_ups(measured, predicted=None):
    """Draw a line for each strategy: the medians, and at each link the range.

    Parameters
    ----------
    measured : dict of str to dict
        Strategy: link (of LINKS): the speed-ups of its turns.
    predicted : dict of str to dict, optional
        Strategy: link: a speed-up; drawn as a dotted line.
    """
    fig, ax = plt.subplots(figsize=(6, 4.2))
    for number, (name, found) in enumerate(measured.items()):
        middle = (len(measured) - 1) / 2
        x = [list(LINKS).index(mbit) + 0.06 * (number - middle) for mbit in found]
        low, high = [min(runs) for runs in found.values()], [max(runs) for runs in found.values()]
        ax.vlines(x, low, high, color=COLORS[number])
        medians = [np.median(runs) for runs in found.values()]
        ax.plot(x, medians, "o-", color=COLORS[number], ms=4, label=name)
        if predicted:
            ax.plot(x, [*predicted[name].values()], ":", color=COLORS[number], label=f"{name}, predicted")
    ax.axhline(1, color=SERIAL, lw=1)
    ax.text(-0.1, 1.02, "as one host", color=SERIAL, va="bottom")
    ax.set_xticks(range(len(LINKS)), LINKS.values())
    ax.set_xlabel("bandwidth of a host's link, Mbit/s")
    ax.set_ylabel("speed-up: two hosts over one")
    ax.set_ylim(bottom=0)
    ax.legend()
