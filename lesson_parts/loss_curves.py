"""Of lesson 09: where a loss curve stays below a level, and the pictures of its losses, sweep and verdict."""

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


def draw_losses(seconds_of_ways, losses, level, title):
    """Draw the held-out loss against the seconds: of each way a line for each turn, and the level.

    Parameters
    ----------
    seconds_of_ways : dict of {str: float array [turns, points]}
        Of each of three ways the seconds until each point of its curve, turn by turn.
    losses : dict of {str: float array [points]}
        Of each way the loss there, the same in every turn.
    level : float
    title : str
    """
    figure, ax = plt.subplots(figsize=(6, 4.2))
    for color, (way, turns) in zip((SERIAL, COLORS[2], COLORS[0]), seconds_of_ways.items()):
        ax.plot([], [], color=color, label=way)
        for seconds in turns:
            ax.plot(seconds, losses[way], color=color, alpha=0.6)
    ax.axhline(level, ls="--", lw=1, color="black")
    ax.text(0.99, level, f"{level:.2f}, half of the way", ha="right", va="bottom", transform=ax.get_yaxis_transform())
    ax.set(xlabel="seconds of training", ylabel="held-out loss", xlim=(0, None), title=title)
    figure.legend(loc="outside lower center", ncols=3)
    plt.show()


def draw_sweep(rates, pairs_of_ways, title):
    """Draw the pairs to the level against the rate: a mark for each seed, a line through the means.

    Parameters
    ----------
    rates : sequence of float
    pairs_of_ways : dict of {str: float array [rates, seeds]}
        Of each of two ways the thousands of pairs. Infinite ones are an open mark in a band, with their number.
    title : str
    """
    found = np.concatenate([pairs.ravel() for pairs in pairs_of_ways.values()])
    top = 1.08 * found[np.isfinite(found)].max()
    never = 1.08 * top
    figure, ax = plt.subplots(figsize=(6, 4.2))
    for marker, color, (name, pairs) in zip("os", (SERIAL, COLORS[0]), pairs_of_ways.items()):
        ax.plot(rates, pairs.mean(axis=1), f"{marker}-", color=color, markersize=0)
        ax.plot([], [], f"{marker}-", color=color, label=name)
        for rate, of_rate in zip(rates, pairs):
            ax.plot([rate] * len(of_rate), of_rate, marker, color=color, alpha=0.6)
            missed = np.isinf(of_rate).sum()
            if missed:
                ax.plot(rate, never, marker, color=color, fillstyle="none")
                side, gap = ("left", 1.05) if rate < np.sqrt(rates[0] * rates[-1]) else ("right", 0.95)
                ax.text(gap * rate, never, f"{missed} of {len(of_rate)} seeds", color=color, ha=side, va="center")
    if np.isinf(found).any():
        ax.axhspan(top, 1.16 * top, color=SERIAL, alpha=0.15, lw=0)
        ax.text(0.5, never, "never at the level", ha="center", va="center", transform=ax.get_yaxis_transform())
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick < top])
    ax.set(xscale="log", xlabel="learning rate", ylabel="thousand pairs to the level")
    ax.set_ylim(0, 1.16 * top)
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()


def draw_verdict(ways, without_exchange, title):
    """Draw each way at its two ratios to one thread, and the curve on which their product is 1.

    Parameters
    ----------
    ways : dict of {str: (float, sequence of float)}
        Of each of two ways how many times the pairs, and how many times the time of a pair in each turn.
    without_exchange : dict of {str: sequence of float}
        Of each way how many times the time of a pair two ranks take that do not exchange, in each turn.
    title : str
    """
    right = 1.1 * max(2, *(max(of_turns) for _, of_turns in ways.values()))
    top = 1.25 * max(2, *(pairs for pairs, _ in ways.values()))
    times = np.linspace(1 / top, right, 200)
    figure, ax = plt.subplots(figsize=(6, 4.4))
    ax.plot(times, 1 / times, color=SERIAL)
    ax.fill_between(np.append(0, times), np.append(top, 1 / times), color=COLORS[2], alpha=0.2, label="sooner than one")
    ax.plot(1, 1, "o", color=SERIAL)
    ax.text(0.94, 0.9, "one\nthread", color=SERIAL, ha="right", va="top")
    for color, (name, (pairs, of_turns)) in zip(COLORS, ways.items()):
        ax.plot([min(of_turns), max(of_turns)], [pairs, pairs], color=color)
        ax.plot(np.median(of_turns), pairs, "s", color=color)
        ax.plot(np.median(without_exchange[name]), pairs, "s", color=color, fillstyle="none", markersize=9)
        ax.text(np.median(of_turns), pairs + 0.06, name, color=color, ha="center")
    ax.plot([], [], "s", color="gray", fillstyle="none", markersize=9, label="without the exchange")
    ax.set(xlabel="time of a pair, times that of one thread", xlim=(0, right), ylim=(0, top))
    ax.set_ylabel("pairs to the level,\ntimes those of one thread")
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()
