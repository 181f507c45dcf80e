"""Of lesson 09: where a loss curve stays below a level, and the pictures of its losses, steps, sweep and verdict."""

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


def draw_losses(pairs, losses, exchanged, title):
    """Draw the held-out losses of three ways against the pairs, a line for each seed, and one run with its exchange.

    Parameters
    ----------
    pairs : float array [points]
        Thousands.
    losses : dict of {str: sequence of float array [points]}
        Of each way, for each seed, the losses there.
    exchanged : float array [points]
        Those of two ranks that exchange, as marks.
    title : str
    """
    figure, ax = plt.subplots(figsize=(6, 4))
    for color, (way, of_seeds) in zip((SERIAL, *COLORS), losses.items()):
        ax.plot(pairs, np.transpose(of_seeds), color=color, lw=1.3, alpha=0.7)
        ax.plot([], [], color=color, label=way)
    ax.plot(pairs, exchanged, "o", color="black", fillstyle="none", markersize=5, label="two ranks, exchanging")
    ax.set(xlabel="thousand pairs", ylabel="held-out loss", xlim=(0, None), title=title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()


def draw_halves(sizes, title):
    """Draw the step of two ranks for several sizes, one thread's step = 1: half of the pairs, then the exchange.

    Parameters
    ----------
    sizes : dict of {str: dict of {str: float array [turns]}}
        Of each size, as "512 pairs, 64 negatives", the ratios to one thread's step: in each turn those of "half, no
        exchange" and "two ranks", and of "all cores". Bars are medians, that of the exchange by turns; a line goes
        from the smallest turn of two ranks to the largest.
    title : str
    """
    figure, ax = plt.subplots(figsize=(6, 4))
    labels = ["half of the pairs, both ranks at work", "exchange", "one process on all cores"]
    for row, ratios in enumerate(sizes.values()):
        both, half = ratios["two ranks"], np.median(ratios["half, no exchange"])
        exchange = np.median(both - ratios["half, no exchange"])
        ax.barh(row, half, 0.5, color=COLORS[0], label=labels[0])
        ax.barh(row, exchange, 0.5, half, color=COLORS[1], label=labels[1])
        ax.plot([min(both), max(both)], [row, row], "k", lw=1.5)
        ax.plot(np.median(ratios["all cores"]), row - 0.38, "v", color=COLORS[2], label=labels[2])
        ax.text(max(max(both), half + exchange), row, f"  {half:.2f} + {exchange:.2f}", va="center")
        labels = [""] * 3
    right = max(max(ratios["two ranks"]) for ratios in sizes.values())
    ax.axvline(1, color="black", lw=1, ls="--")
    ax.set(xlabel="times the step of one thread (dashed)", xlim=(0, 1.4 * right), title=title)
    ax.set_yticks(range(len(sizes)), [size.replace(", ", ",\n") for size in sizes])
    ax.set_ylim(len(sizes) - 0.5, -0.6)
    ax.grid(visible=False)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()


def draw_sweep(rates, pairs_of_ways, title):
    """Draw the pairs to the level against the rate: a mark for each seed, a line through the medians.

    Parameters
    ----------
    rates : sequence of float
    pairs_of_ways : dict of {str: sequence of float array [seeds]}
        Of each of two ways, for each rate, the thousands of pairs, as many as it has seeds. Infinite ones are an open
        mark in a band, with their number.
    title : str
    """
    found = np.concatenate([of_rate for pairs in pairs_of_ways.values() for of_rate in pairs])
    top = 1.08 * found[np.isfinite(found)].max()
    figure, ax = plt.subplots(figsize=(6, 4.2))
    for row, (name, pairs) in enumerate(pairs_of_ways.items()):
        marker, color, never = "os"[row], (SERIAL, COLORS[0])[row], (1.06 + 0.1 * row) * top
        ax.plot(rates, [np.median(of_rate) for of_rate in pairs], color=color)
        ax.plot([], [], f"{marker}-", color=color, label=name)
        for rate, of_rate in zip(rates, pairs):
            ax.plot([rate] * len(of_rate), of_rate, marker, color=color, alpha=0.6)
            missed = np.isinf(of_rate).sum()
            if missed:
                ax.plot(rate, never, marker, color=color, fillstyle="none")
                side, gap = ("left", 1.04) if rate < np.sqrt(rates[0] * rates[-1]) else ("right", 0.96)
                ax.text(gap * rate, never, f"{missed} of {len(of_rate)}", color=color, ha=side, va="center")
    ax.set(xscale="log", xlabel="learning rate", ylabel="thousand pairs to the level")
    ax.set_ylim(0, top)
    if np.isinf(found).any():
        ticks = [tick for tick in ax.get_yticks() if 0 <= tick < 0.97 * top]
        ax.axhspan(top, 1.22 * top, color=SERIAL, alpha=0.15, lw=0)
        ax.set_yticks([*ticks, 1.11 * top], [*(f"{tick:g}" for tick in ticks), "never\n(seeds)"])
        ax.set_ylim(0, 1.22 * top)
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()


def draw_verdict(ways, without_exchange, title):
    """Draw each way at its two ratios to one thread, and the curve on which their product is 1.

    Parameters
    ----------
    ways : dict of {str: (float array [seeds], float array [turns])}
        Of each of two ways how many times the pairs, for each seed, and how many times the time of a pair, in each
        turn. Marks are medians, lines go from the smallest to the largest.
    without_exchange : dict of {str: sequence of float}
        Of each way how many times the time of a pair two ranks take that do not exchange, in each turn.
    title : str
    """
    right = 1.1 * max(2, *(max(of_turns) for _, of_turns in ways.values()))
    top = 1.25 * max(2, *(max(of_seeds) for of_seeds, _ in ways.values()))
    times = np.linspace(1 / top, right, 200)
    figure, ax = plt.subplots(figsize=(6, 4.4))
    ax.plot(times, 1 / times, color=SERIAL)
    ax.fill_between(np.append(0, times), np.append(top, 1 / times), color=COLORS[2], alpha=0.2, label="sooner than one")
    ax.plot(1, 1, "o", color=SERIAL, markersize=5)
    ax.text(0.88, 0.86, "one\nthread", color=SERIAL, ha="right", va="top")
    for color, (name, (of_seeds, of_turns)) in zip(COLORS, ways.items()):
        pairs, middle, free = np.median(of_seeds), np.median(of_turns), without_exchange[name]
        ax.plot([min(of_turns), max(of_turns)], [pairs, pairs], color=color)
        ax.plot([middle, middle], [min(of_seeds), max(of_seeds)], color=color)
        ax.plot(middle, pairs, "s", color=color)
        ax.plot([min(free), max(free)], [pairs, pairs], color=color, ls=":")
        ax.plot(np.median(free), pairs, "s", color=color, fillstyle="none", markersize=9)
        ax.text(min(of_turns), pairs + 0.02 * top, name, color=color)
    ax.plot([], [], "s:", color="gray", fillstyle="none", markersize=9, label="without the exchange")
    ax.set(xlabel="time of a pair, times that of one thread", xlim=(0, right), ylim=(0, top))
    ax.set_ylabel("pairs to the level,\ntimes those of one thread")
    ax.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    plt.show()
