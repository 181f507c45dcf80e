"""For lesson 22: where the time goes while ranks are lost and come, from what their processes reported."""

import itertools

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL


def usual(period):
    """Seconds of a step, the median of the reports of a period."""
    return np.median([report["seconds"] for report in period])


def standstill(reports, end, period):
    """When training ended, new processes had imported, all had met, and training went on.

    Parameters
    ----------
    reports : list of dict
        All reports of a job, of ranks and of the driver.
    end : float
        When training ended, as `time.time()` says it.
    period : list of dict
        The reports of the ranks after that, in the order of time.

    Returns
    -------
    list of float
        Four moments. The second is the first if there was no new process.
    """
    first = period[0]["time"]
    met = max(r["time"] for r in reports if "start" in r and end < r["time"] < first)
    imported = [r["time"] for r in reports if "imported" in r and end < r["time"] < met]
    trains = max(met, first - 20 * usual(period))
    return [end, max(imported, default=end), met, trains]


def undone(report, restored):
    """Whether a `restore` after this report has undone its steps."""
    return any(report["time"] < back["time"] and report["step"] > back["restored"] for back in restored)


def draw_changing_ranks(reports, bands, title):
    """Draw loss and steps per second of a run whose number of ranks changes, and when it stood still.

    Parameters
    ----------
    reports : list of dict
        Of one rank, in the order of time: each has "time" and "seconds" (of a step), "loss" and "size" (ranks).
    bands : list of (str, float, float)
        Of each standstill the word for it, and when it began and ended, in seconds of the clock of "time".
    title : str
    """
    zero = reports[0]["time"]
    _, axes = plt.subplots(2, sharex=True, figsize=(5.4, 4.6), height_ratios=[3, 2])
    above, below = axes
    for size in sorted({report["size"] for report in reports}):
        of_size = [report for report in reports if report["size"] == size]
        times = [report["time"] - zero for report in of_size]
        above.plot(times, [report["loss"] for report in of_size], ".", ms=4, color=COLORS[size])
        below.plot(times, [1 / report["seconds"] for report in of_size], ".", ms=4, color=COLORS[size])
    for size, period in itertools.groupby(reports, key=lambda report: report["size"]):
        times = [report["time"] - zero for report in period]
        first = times[0] == 0
        above.text(
            0 if first else (times[0] + times[-1]) / 2,
            0.02,
            f"{size} ranks" if first else size,  # the first says what the others count
            color=COLORS[size],
            weight="bold",
            ha="left" if first else "center",
            transform=above.get_xaxis_transform(),
        )
    for word, begin, end in bands:
        for axis in axes:
            axis.axvspan(begin - zero, end - zero, color=SERIAL, alpha=0.3, lw=0.5)
        middle = (begin + end) / 2 - zero
        said = f"{word}\n{end - begin:.1f} s"
        above.text(middle, 0.99, said, ha="center", va="top", transform=above.get_xaxis_transform())
    above.margins(y=0.3)  # room for these words
    above.set(ylabel="NCE loss", title=title)
    below.set(ylabel="steps/s", xlabel="seconds", ylim=(0, None))
    plt.show()
