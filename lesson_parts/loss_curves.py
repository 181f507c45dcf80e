"""Of lesson 09: where a loss curve stays below a level, and the pictures of its sweep and of its verdict."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL


def stays_below(level, places, losses):
    """Interpolate where a curve goes below a loss for good: its last crossing.

    Parameters
    ----------
    level : float
        The loss to be reached, and kept.
    places : float array [points]
        Pairs or seconds, ascending; the first is before training.
    losses : float array [..., points]
        Of each curve the loss at each place.

    Returns
    -------
    float array [...]
        Of each curve the place at which the straight line between two losses meets the level; infinite if the curve
        ends above it.

    Raises
    ------
    ValueError
        If a curve has another number of points than `places`.
    """
    losses = np.asarray(losses)
    if losses.shape[-1] != len(places):
        raise ValueError(f"{losses.shape[-1]} losses at {len(places)} places: did the text end before the steps?")

    def of_one(curve):
        above = np.flatnonzero(curve > level)
        if not len(above):
            return places[0]
        last = above[-1]
        if last == len(curve) - 1:
            return np.inf
        return np.interp(level, [curve[last + 1], curve[last]], [places[last + 1], places[last]])

    return np.apply_along_axis(of_one, -1, losses)


def draw_sweep(rates, pairs_of_ways, title):
    """Draw the pairs to the level against the rate: a mark for each seed, a line through the means.

    Parameters
    ----------
    rates : sequence of float
    pairs_of_ways : dict of {str: float array [rates, seeds]}
        Of each of two ways the thousands of pairs. Infinite ones are an open mark at the top, with their number.
    title : str
    """
    found = np.concatenate([pairs.ravel() for pairs in pairs_of_ways.values()])
    top = 1.12 * found[np.isfinite(found)].max()
    figure, ax = plt.subplots(figsize=(6, 4.2))
    for shift, marker, color, (name, pairs) in zip((0.97, 1.03), "os", (SERIAL, COLORS[0]), pairs_of_ways.items()):
        ax.plot(rates, pairs.mean(axis=1), f"{marker}-", color=color, markersize=0)
        ax.plot([], [], f"{marker}-", color=color, label=name)
        for rate, of_rate in zip(rates, pairs):
            ax.plot([rate] * len(of_rate), of_rate, marker, color=color, alpha=0.6)
            missed = np.isinf(of_rate).sum()
            if missed:
                ax.plot(shift * rate, top, marker, color=color, fillstyle="none")
                ax.text(shift * rate, 1.03 * top, missed, color=color, ha="center")
    ax.plot([], [], "o", color="gray", fillstyle="none", label="never: so many seeds")
    ax.set(xscale="log", xlabel="learning rate", ylabel="thousand pairs to the level", ylim=(0, 1.15 * top))
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=3)
    plt.show()


def draw_verdict(ways, without_exchange, title):
    """Draw each way at its two ratios to one thread, and the curve on which their product is 1.

    Parameters
    ----------
    ways : dict of {str: (float, sequence of float)}
        Of each of two ways how many times the pairs, and how many times the time of a pair in each turn.
    without_exchange : float
        How many times the time of a pair two ranks take that do not exchange.
    title : str
    """
    right = 1.1 * max(2, *(max(of_turns) for _, of_turns in ways.values()))
    top = 1.25 * max(2, *(pairs for pairs, _ in ways.values()))
    times = np.linspace(1 / top, right, 200)
    figure, ax = plt.subplots(figsize=(6, 4.4))
    ax.plot(times, 1 / times, color=SERIAL)
    ax.fill_between(
        times, 1 / times, where=times >= without_exchange, color=COLORS[2], alpha=0.2, label="sooner than one thread"
    )
    ax.axvline(without_exchange, ls="--", color=COLORS[2], label="two ranks without the exchange")
    ax.plot(1, 1, "o", color=SERIAL)
    ax.text(0.96, 0.94, "one thread", color=SERIAL, ha="right", va="top")
    for color, (name, (pairs, of_turns)) in zip(COLORS, ways.items()):
        ax.plot([min(of_turns), max(of_turns)], [pairs, pairs], color=color)
        ax.plot(np.median(of_turns), pairs, "s", color=color)
        ax.text(np.median(of_turns), pairs + 0.06, name, color=color, ha="center")
    ax.set(xlabel="time of a pair, times that of one thread", xlim=(0, right), ylim=(0, top))
    ax.set_ylabel("pairs to the level,\ntimes those of one thread")
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()
