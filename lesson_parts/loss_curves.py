"""Of lesson 09: where a loss curve stays below a level, and the pictures of its losses, step, sweep and verdict."""

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


def draw_losses(steps, losses, level, steps_to_level, title):
    """Draw the held-out losses of two ways against the steps, the second one dashed on top, and the level.

    Parameters
    ----------
    steps : int array [points]
    losses : dict of {str: float array [points]}
        Of each of two ways the loss there.
    level, steps_to_level : float
        Where a mark stands.
    title : str
    """
    figure, ax = plt.subplots(figsize=(6, 3.8))
    looks = {"color": SERIAL, "lw": 6, "alpha": 0.5}, {"color": COLORS[0], "lw": 2, "ls": "--"}
    for look, (way, of_way) in zip(looks, losses.items()):
        ax.plot(steps, of_way, label=way, **look)
    ax.axhline(level, ls=":", lw=1, color="black")
    ax.plot(steps_to_level, level, "o", color="black")
    ax.text(0.02, level, f"level {level:.2f}", va="bottom", transform=ax.get_yaxis_transform())
    ax.set(xlabel="steps", ylabel="held-out loss", xlim=(0, steps[-1]), title=title)
    ax.legend(loc="lower left", handlelength=4)
    plt.show()


def draw_step(ratios, title):
    """Draw the time of a step: a bar for each way, and the parts of the step of two ranks one below the other.

    Parameters
    ----------
    ratios : dict of {str: float array [turns]}
        Times one thread's step, turn by turn, of the ways "one thread", "all cores", "two ranks", "half, alone" and
        "half, both ranks". Bars end at medians (a part is the difference of two), thin lines go from the smallest turn
        to the largest.
    title : str
    """
    median = {way: np.median(of_turns) for way, of_turns in ratios.items()}
    whole = [("one thread", SERIAL), ("all cores", COLORS[2]), ("two ranks", None)]
    parts = [
        ("two ranks =\nhalf of the pairs", COLORS[0], "half, alone"),
        ("+ other rank at work", COLORS[3], "half, both ranks"),
        ("+ exchange", COLORS[1], "two ranks"),
    ]
    figure, ax = plt.subplots(figsize=(6, 4))

    def spread(row, way, label):
        low, high = min(ratios[way]), max(ratios[way])
        ax.plot([low, high], [row, row], "k", lw=1.5)
        ax.text(high, row, f"  {label}", va="center")

    begin = 0
    for row, (way, color) in enumerate(whole):
        if color:
            ax.barh(row, median[way], 0.6, color=color)
        spread(row, way, f"{median[way]:.2f}")
    for row, (_, color, way) in enumerate(parts, start=len(whole)):
        part = median[way] - begin
        for at in (len(whole) - 1, row):
            ax.barh(at, part, 0.6, begin, color=color, zorder=1)
        spread(row, way, f"{part:+.2f}" if begin else f"{part:.2f}")
        begin = median[way]
    right = max(max(of_turns) for of_turns in ratios.values())
    ax.axhline(len(whole) - 0.5, color="black", lw=0.8, ls=":")
    ax.set(xlabel="times the step of one thread", xlim=(0, 1.25 * right), title=title)
    ax.set_yticks(range(len(whole) + len(parts)), [way for way, _ in whole] + [name for name, _, _ in parts])
    ax.invert_yaxis()
    ax.grid(visible=False)
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
    ax.plot(1, 1, "o", color=SERIAL, markersize=5)
    ax.text(0.88, 0.86, "one\nthread", color=SERIAL, ha="right", va="top")
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
