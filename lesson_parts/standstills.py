"""For lesson 22: where the time goes while ranks are lost and come, from what their processes reported."""

import itertools
import time

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, table


def wait_for_reports(job, ranks):
    """Let a job train on until so many ranks have each reported eight times since this call.

    Parameters
    ----------
    job : examples.elastic.Job
    ranks : int
    """
    since = time.time()

    def enough():
        new = [r for r in job.reports if "loss" in r and r["size"] == ranks and r["time"] > since]
        return len(new) >= 8 * ranks

    job.wait(enough, 300)


def periods_of(trained):
    """Cut reports of training, a list of dict in the order of time, where the number of ranks changes."""
    return [list(group) for _, group in itertools.groupby(trained, key=lambda report: report["size"])]


def standstills(reports, periods, started_at, killed_at):
    """Return four moments of each standstill: of the start, and of each change of the number of ranks.

    Parameters
    ----------
    reports : list of dict
        All reports of a job, of ranks and of the driver.
    periods : list of list of dict
        Its reports of training, as `periods_of` cuts them.
    started_at, killed_at : float
        When the job was started and when the first period was ended by a kill, as `time.time()` says it.

    Returns
    -------
    list of list of float
        When training ended, new processes had imported, all had met, and training went on. The second moment is the
        first if there was no new process.
    """
    ends = [started_at, *(period[-1]["time"] for period in periods[:-1])]
    ends[1] = max(ends[1], killed_at)
    return [_standstill(reports, end, period) for end, period in zip(ends, periods)]


def _standstill(reports, end, period):
    first = period[0]["time"]
    met = max(r["time"] for r in reports if "start" in r and end < r["time"] < first)
    imported = [r["time"] for r in reports if "imported" in r and end < r["time"] < met]
    usual = np.median([report["seconds"] for report in period])
    trains = max(met, first - 20 * usual)
    return [end, max(imported, default=end), met, trains]


def table_of_standstills(changes, still):
    """Return a table to be displayed: of each change its name and the seconds of the parts of its standstill."""
    rows = []
    for change, moments in zip(changes, still):
        parts = [f"{part:.1f}" if part else "-" for part in np.diff(moments)]
        rows.append([change, *parts, f"{moments[-1] - moments[0]:.1f}"])
    return table(["change", "until imported, s", "until all have met, s", "first steps, s", "standstill, s"], rows)


def draw_changing_ranks(reports, periods, still, words, title):
    """Draw the loss of a run whose number of ranks changes, and below it what the process of each host does.

    Parameters
    ----------
    reports : list of dict
        All reports of a job, in the order of time.
    periods, still : list
        As `periods_of` and `standstills` give them.
    words : list of str
        For each standstill.
    title : str
    """
    zero = still[0][0]
    begun = {}  # of each host, when its process began; in this order from top to bottom
    for report in reports:
        if "pid" in report and "exit" not in report:
            begun[report["host"]] = report["time"] - zero
    hosts = list(begun)
    _, axes = plt.subplots(2, sharex=True, figsize=(5.4, 4.8), height_ratios=[3, 2])
    above, below = axes

    for report in reports:
        if "imported" in report:
            begin, end = begun[report["host"]], report["time"] - zero
            below.barh(hosts.index(report["host"]), end - begin, left=begin, color=SERIAL)
            below.text(
                (begin + end) / 2,
                hosts.index(report["host"]),
                "starts",
                color="white",
                ha="center",
                va="center",
                size=8,
            )

    for period, (end, *_, goes_on), word in zip(periods, still, words):
        size = period[0]["size"]
        for host in hosts:
            of_host = [report["time"] - zero for report in period if report["host"] == host]
            if of_host:
                begin = goes_on - zero
                below.barh(hosts.index(host), of_host[-1] - begin, left=begin, color=COLORS[size])
        of_rank_0 = [report for report in period if report["rank"] == 0]
        times = [report["time"] - zero for report in of_rank_0]
        above.plot(times, [report["loss"] for report in of_rank_0], ".", ms=5, color=COLORS[size])
        first = period is periods[0]
        above.text(
            times[-1] if first else (times[0] + times[-1]) / 2,
            0.02,
            f"{size} ranks" if first else size,  # the first says what the others count
            color=COLORS[size],
            weight="bold",
            ha="right" if first else "center",
            transform=above.get_xaxis_transform(),
        )
        for axis in axes:
            axis.axvspan(end - zero, goes_on - zero, color=SERIAL, alpha=0.3, lw=0.5, zorder=0)
        above.text(
            (end + goes_on) / 2 - zero,
            0.99,
            f"{word}\n{goes_on - end:.1f} s",
            ha="center",
            va="top",
            transform=above.get_xaxis_transform(),
        )
    above.margins(y=0.3)  # room for these words
    above.set(ylabel="NCE loss", title=title)
    below.set(xlabel="seconds", yticks=range(len(hosts)), yticklabels=hosts)
    below.invert_yaxis()
    below.grid(False)
    plt.show()
