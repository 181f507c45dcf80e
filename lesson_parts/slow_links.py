"""The pictures and tables of lesson 24, a step as bars, speed-ups over the bandwidth, a cut; and what is recorded."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from helpers.plots import COLORS, SERIAL, gantt, low_high, median_and_range, table

LINKS = {10: "10", 100: "100", 1000: "1,000", None: "no limit"}  # Mbit/s: as it is written
TOP = 2.3  # of the axis of speed-ups: more than 2 is a measurement's error
RECORDS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def written(mbit):
    """Write a link, as "62", "1,000" or "no limit"."""
    return "no limit" if mbit is None else f"{mbit:,}"


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


def plot_speed_ups(measured, predict=None, corrected=None):
    """Draw a line for each strategy: the medians, and at each link the range.

    Parameters
    ----------
    measured : dict of str to dict
        Strategy: link (Mbit/s or None): the speed-ups of its turns. What is above 2.3 is cut off, and written there.
    predict : function, optional
        predict(strategy, link) is a speed-up. It is drawn as a dotted line, and as a hollow point without a limit; the
        bandwidth from which on it is more than 1 is marked.
    corrected : function, optional
        corrected(strategy, link) are the speed-ups that are predicted with EACH, one for each turn. Their median is
        drawn dash-dotted, and as a hollow square without a limit. Only beside `predict`.
    """
    fig, ax = plt.subplots(figsize=(6, 4.2))
    ends = []  # of the lines: speed-up, place, strategy, colour
    for number, (name, found) in enumerate(measured.items()):
        color = COLORS[number]
        shift = 0.06 * (number - (len(measured) - 1) / 2)
        shown = sorted({*found, 1000} if None in found else found, key=place)
        x = [place(mbit) + shift for mbit in shown]
        medians = [np.median(found.get(mbit, np.nan)) for mbit in shown]  # nan breaks the line
        ax.plot(x, medians, "o-", color=color, ms=4)
        for mbit, runs in found.items():
            ax.vlines(place(mbit) + shift, min(runs), min(TOP, max(runs)), color=color)
            if max(runs) > TOP:
                ax.text(place(mbit) + shift + 0.04, TOP, f"to {max(runs):.1f}", color=color, va="top", size=9)
        ends.append((medians[-1], x[-1], name.split(",")[0], color))
        if predict:
            links = np.geomspace(10, 1000, 41)
            promised = [predict(name, mbit) for mbit in links]
            places = [place(mbit) for mbit in links]
            ax.plot(places, promised, ":", color=color)
            if None in found:
                ax.plot(place(None) + shift, predict(name, None), "o", color=color, mfc="white", ms=6)
            if corrected:
                ax.plot(places, [np.median(corrected(name, mbit)) for mbit in links], "-.", color=color, lw=1)
                if None in found:
                    again = np.median(corrected(name, None))
                    ax.plot(place(None) + shift, again, "s", color=color, mfc="none", ms=6)
            if promised[0] < 1 < promised[-1]:
                _mark(ax, np.interp(1, promised, places), color)
    free = -np.inf
    for y, x, name, color in sorted(ends):  # labels that do not touch
        free = max(y, free + 0.08 * TOP)
        ax.text(x + 0.1, free, name, color=color, va="center")
    ax.axhline(1, color=SERIAL, lw=1)
    ax.text(-0.15, 1.02, "as one host", color=SERIAL, va="bottom")
    ax.axhline(2, color=SERIAL, lw=1, ls="--")
    ax.text(0.5, 2.02, "twice", color=SERIAL, va="bottom", ha="center")
    if predict:
        legend = "dotted, hollow: predicted"
        if corrected:
            legend = "dotted, circle: predicted; dash-dotted, square: with EACH"
        ax.text(0.02, 0.98, legend, transform=ax.transAxes, va="top")
    ax.set_xticks(range(len(LINKS)), LINKS.values())
    ax.set_xlim(-0.2, 3.9)
    ax.set_ylim(0, TOP)
    ax.set_xlabel("bandwidth of a host's link, Mbit/s")
    ax.set_ylabel("speed-up: two hosts over one")


def _mark(ax, x, color):
    """Mark where a predicted line passes 1, with the bandwidth."""
    ax.vlines(x, 0, 1, color=color, ls=":", lw=1)
    ax.plot(x, 1, "o", color=color, mfc="white", ms=6)
    ax.annotate(
        f"predicted: even\nat {10 ** (x + 1):.0f} Mbit/s",
        (x, 1), (-0.15, 1.4), color=color, arrowprops={"arrowstyle": "-", "color": color, "shrinkB": 4},
    )  # fmt: skip


def title_of(measured, promised):
    """Say between which links the medians of hot and cold pass 1, and on which links canonical pays.

    Parameters
    ----------
    measured : dict of str to dict
        As in `plot_speed_ups`.
    promised : int
        The bandwidth in Mbit/s at which hot and cold should be even.

    Returns
    -------
    str
        Two lines.
    """
    hot, canonical = _passes_one(measured["hot and cold"]), _passes_one(measured["canonical"])
    return f"Hot and cold: {hot}, {promised} promised\nCanonical: {canonical} (medians)"


def _passes_one(found):
    """Say it of the medians of one strategy: between two links, on none, on all, or more than once."""
    links = sorted(found, key=place)
    pays = [np.median(found[mbit]) > 1 for mbit in links]
    if not any(pays) or all(pays):
        return f"two hosts {'pay' if all(pays) else 'lose'} on every link"
    first = pays.index(True)
    if not all(pays[first:]):
        return "they pass 1 more than once"
    return f"even between {written(links[first - 1])} and {written(links[first])} Mbit/s"


# ---- Tables


def table_of_needs(compute, latency, n_bytes, even):
    """Make a table of what the formula needs of each strategy, and of the bandwidth that it calls even.

    Parameters
    ----------
    compute, latency, n_bytes : dict of str to float
        Strategy: of a step the seconds of computing, the seconds of an exchange of almost no bytes, the bytes.
    even : function
        even(strategy) is a bandwidth in Mbit/s.
    """
    rows = []
    for name in compute:
        ms = [f"{1e3 * seconds:.2f}" for seconds in (compute[name], latency[name])]
        rows.append([name, *ms, f"{n_bytes[name] / 1e6:.3f}", f"{even(name):,.0f}"])
    return table(["a step of", "compute, ms", "latency, ms", "bytes, MB", "even at, Mbit/s"], rows)


def compare_with_formula(measured, predict):
    """Show a table of predicted and measured speed-ups; print how far they are apart, and who is right about a gain.

    Parameters
    ----------
    measured : dict of str to dict
        Strategy: link (Mbit/s or None): the speed-ups of its turns.
    predict : function
        predict(strategy, link) is a speed-up.
    """
    rows, ratios, right = [], [], []
    for name, found in measured.items():
        for mbit, turns in found.items():
            promised, median = predict(name, mbit), np.median(turns)
            ratios.append(promised / median)
            right.append((promised > 1) == (median > 1))
            numbers = [f"{promised:.3f}", median_and_range(turns, 3), f"{ratios[-1]:.2f}"]
            rows.append([name, written(mbit), *numbers, f"{sum(turns > 1)} of {len(turns)}"])
    columns = ["strategy", "Mbit/s", "predicted", "measured: median (range)", "quotient", "turns that pay"]
    display(table(columns, rows))
    print(f"predicted / measured: {low_high(ratios)}")
    print(f"right about whether it pays: {sum(right)} of {len(right)} rows")


def table_with_each(measured, predict, corrected):
    """Make a table of speed-ups: predicted, predicted with EACH, measured.

    Parameters
    ----------
    measured, predict, corrected
        As in `plot_speed_ups`.
    """
    rows = []
    for name, found in measured.items():
        for mbit, turns in found.items():
            again = [median_and_range(numbers, 3) for numbers in (corrected(name, mbit), turns)]
            rows.append([name, written(mbit), f"{predict(name, mbit):.3f}", *again])
    return table(["strategy", "Mbit/s", "predicted", "predicted with EACH", "measured"], rows)


# ---- A cut


def plot_cut(done, out, back):
    """Draw when each step was done, the time without a cable shaded, and show it.

    Parameters
    ----------
    done : float array [steps]
        When each step of a host was done, in seconds.
    out, back : float
        When the cable was pulled, and when it was back, by the same clock.
    """
    start = done[0]
    plt.axvspan(out - start, back - start, color="#dddddd")
    plt.text((out + back) / 2 - start, len(done) / 2, "no cable", ha="center", va="bottom")
    plt.plot(done - start, np.arange(len(done)), ".", color=COLORS[0], ms=3)
    plt.xlabel("s")
    plt.ylabel("steps that host0 has done")
    plt.title("No step while the cable is out; then host0 goes on")
    plt.show()


# ---- What is recorded


def lost_hosts():
    """What `python -m benchmarks.host_faults` saved, as the rows of a table.

    Returns
    -------
    list of list of str
        Of each launcher: its name, what it does in a cut of 5 s, how long it stands still, what it does when a host is
        lost.
    """
    rows = []
    for row in json.loads((RECORDS / "host_faults.json").read_text())["rows"]:
        end = row["ended_after"]
        lost = "goes on" if row["goes_on_after_loss"] else f"still waits after {row['limit']:.0f} s"
        if not row["goes_on_after_loss"] and end is not None:
            lost = f"ends, after {end:.0f} s"
        cut = "goes on" if row["goes_on_after_cut"] else "ends"
        rows.append([row["system"], cut, f"{row['stood_still']:.0f} s", lost])
    return rows


def read_study(names):
    """Read what `benchmarks.bandwidth` and `benchmarks.servers_bandwidth` saved of some strategies.

    Returns
    -------
    studied : dict of str to dict
        Strategy: link: the row of the record, with "bytes_per_pair", "quality_one" and "quality_two" among others.
    gains : dict of str to dict
        Strategy: link: the speed-ups of its runs, two hosts over the median of one. Canonical has none at 1,000 Mbit/s,
        where the burst of the limited link is larger than the bytes of a step.
    """
    rows = []
    for file in ("bandwidth.json", "servers_bandwidth.json"):
        rows += json.loads((RECORDS / file).read_text())["rows"]
    studied = {name: {row["mbit"]: row for row in rows if row["strategy"] == name} for name in names}
    gains = {
        name: {
            mbit: np.array(row["speeds"]) / row["one"]
            for mbit, row in found.items()
            if (name, mbit) != ("canonical", 1000)
        }
        for name, found in studied.items()
    }
    return studied, gains


def promised_by_study(row):
    """Compute the speed-up that the study predicts, with the computing of one host alone.

    For blocks a step lasts as long as the longer of computing and exchange; for servers there is no latency. For hot
    and cold the study took the computing of both hosts at once, which its record has 2.2 times as fast as one.

    Parameters
    ----------
    row : dict
        Of `read_study`; not of canonical, whose messages the study counted wrongly.

    Returns
    -------
    float
    """
    if row["strategy"] != "hot and cold":
        return min(2, row["predicted"] / row["one"])
    compute = 1 / row["one"]  # s, for each pair of a host
    exchange = 2 / row["predicted"] - 2 / row["disabled"]
    return 2 * compute / (compute + exchange)
