"""The pictures of lesson 24: a step as bars, and speed-ups of two hosts over the bandwidth of their links."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, gantt

LINKS = {10: "10", 100: "100", 1000: "1,000", None: "no limit"}  # Mbit/s: as it is written


def place(mbit):
    """Tell where a link stands on the axis: 10, 100 and 1,000 Mbit/s at 0, 1 and 2, no limit (None) at 3."""
    return 3 if mbit is None else np.log10(mbit) - 1


def plot_steps(steps):
    """Draw a step on each link as a bar of its three parts, and a line where one host alone has done two batches.

    Parameters
    ----------
    steps : dict of str to tuple of float
        A link as it is written: the seconds of computing, latency and bytes.
    """
    fig, ax = plt.subplots(figsize=(6, 3))
    colors = {"compute": COLORS[0], "latency": COLORS[3], "bytes": COLORS[1]}
    spans = []
    for parts in steps.values():
        ends = np.cumsum(parts)
        spans.append(list(zip(colors, ends - parts, ends, strict=True)))
    gantt(ax, spans, colors)
    ax.set_yticks(range(len(steps)), steps)
    ax.set_ylabel("Mbit/s")
    one_host = 2e3 * next(iter(steps.values()))[0]
    ax.axvline(one_host, color=SERIAL, lw=1)
    ax.text(one_host, len(steps) - 0.55, " one host: two batches are done", color=SERIAL, va="center")
    ax.set_ylim(len(steps) - 0.3, -0.6)


def plot_speed_ups(measured, predict=None):
    """Draw a line for each strategy: the medians, and at each link the range.

    Parameters
    ----------
    measured : dict of str to dict
        Strategy: link (Mbit/s or None): the speed-ups of its turns.
    predict : function, optional
        predict(strategy, link) is a speed-up, or one of each turn, whose median is drawn; as a dotted line, and the
        bandwidth from which on it is more than 1 is marked.
    """
    fig, ax = plt.subplots(figsize=(6, 4.2))
    ends = []  # of the lines: speed-up, place, strategy, colour
    for number, (name, found) in enumerate(measured.items()):
        color = COLORS[number]
        shift = 0.06 * (number - (len(measured) - 1) / 2)
        x = [place(mbit) + shift for mbit in LINKS]
        medians = [np.median(found.get(mbit, np.nan)) for mbit in LINKS]  # nan breaks the line
        low, high = [min(runs) for runs in found.values()], [max(runs) for runs in found.values()]
        ax.vlines([place(mbit) + shift for mbit in found], low, high, color=color)
        ax.plot(x, medians, "o-", color=color, ms=4)
        last = max(number for number, mbit in enumerate(LINKS) if mbit in found)
        ends.append((medians[last], x[last], name.split(",")[0], color))
        if predict:
            links = [*np.geomspace(10, 1000, 41), *([None] if None in found else [])]
            promised = [np.median(predict(name, mbit)) for mbit in links]
            places = [place(mbit) for mbit in links]
            ax.plot(places, promised, ":", color=color)
            if promised[0] < 1 < promised[-1]:
                _mark(ax, np.interp(1, promised, places), color)
    top, free = ax.get_ylim()[1], -np.inf
    for y, x, name, color in sorted(ends):  # labels that do not touch
        free = max(y, free + 0.07 * top)
        ax.text(x + 0.1, free, name, color=color, va="center")
    ax.axhline(1, color=SERIAL, lw=1)
    ax.text(-0.15, 1.02, "as one host", color=SERIAL, va="bottom")
    ax.axhline(2, color=SERIAL, lw=1, ls="--")
    ax.text(0.5, 2.02, "twice", color=SERIAL, va="bottom", ha="center")
    if predict:
        ax.text(0.02, 0.98, "dotted: predicted", transform=ax.transAxes, va="top")
    ax.set_xticks(range(len(LINKS)), LINKS.values())
    ax.set_xlim(-0.2, 3.9)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("bandwidth of a host's link, Mbit/s")
    ax.set_ylabel("speed-up: two hosts over one")


def _mark(ax, x, color):
    """Mark where a predicted line passes 1, with the bandwidth."""
    ax.vlines(x, 0, 1, color=color, ls=":", lw=1)
    ax.plot(x, 1, "o", color=color, mfc="white", ms=6)
    ax.text(x + 0.06, 0.68, f"predicted to pay\nfrom {10 ** (x + 1):.0f} Mbit/s on", color=color, va="center")


def title_of(measured):
    """Say of each strategy where two hosts lose in every turn, and where they pay in every turn.

    Parameters
    ----------
    measured : dict of str to dict
        As in `plot_speed_ups`.

    Returns
    -------
    str
        A line for each strategy.
    """
    lines = []
    for name, found in measured.items():
        lose = [mbit for mbit, turns in found.items() if max(turns) < 1]
        pay = [mbit for mbit, turns in found.items() if min(turns) > 1]
        parts = [f"always {verb}{_where(links, found)}" for verb, links in (("loses", lose), ("pays", pay)) if links]
        said = ", ".join(parts).replace(" Mbit/s, always pays at", ", always pays at")
        lines.append(f"{name.capitalize()} {said or 'pays in some turns, and loses in others'}")
    return "\n".join(lines)


def _where(links, all_links):
    """Write some links of a strategy, as " at 10 and 100 Mbit/s"; "" for all of them."""
    if len(links) == len(all_links):
        return ""
    limits = " and ".join(f"{mbit:,g}" for mbit in links if mbit)
    parts = [f"at {limits} Mbit/s"] if limits else []
    return " " + " and ".join(parts + (["without a limit"] if None in links else []))
