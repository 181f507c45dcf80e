"""The meters of lesson 18: CPU time and memory of processes, ways that take turns, and a limit on memory."""

import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import psutil

from helpers.plots import COLORS, SERIAL
from lesson_parts.table_homes import take_turns


def cpu_seconds(pids, role=""):
    """The CPU time (s) until now of all processes in {name: pid} with `role` in their names."""
    some = [psutil.Process(pid) for name, pid in pids.items() if role in name]
    return sum(sum(process.cpu_times()[:2]) for process in some)


def resident(pids):
    """What each process has in memory now: {name: bytes} of {name: pid}."""
    return {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}


def race(ways, pids, steps, turns=3):
    """Let ways of training take turns, each turn from another one on.

    Parameters
    ----------
    ways : dict of str to callable
        Each trains `steps` steps, and returns a list of results.
    pids : dict of str to int
        All processes whose CPU time counts, by name.
    steps, turns : int

    Returns
    -------
    dict
        Of each way {"speeds": steps/s of each turn, "cpu": ms of all processes a step in each turn, "last": the last
        result of all}.
    """

    def measured(run):
        cpu, began = cpu_seconds(pids), time.perf_counter()
        results = run()
        seconds = time.perf_counter() - began
        return steps / seconds, 1000 * (cpu_seconds(pids) - cpu) / steps, results[-1]

    found = {}
    for way, rows in take_turns({way: partial(measured, run) for way, run in ways.items()}, turns).items():
        speeds, cpu, results = zip(*rows)
        found[way] = {"speeds": [*speeds], "cpu": [*cpu], "last": results[-1]}
    return found


def draw_cpu(races):
    """Draw the CPU time of a step: a bar is the mean of the turns, a dot a turn. races: {ids: what `race` found}."""
    _, axes = plt.subplots(figsize=(5, 3))
    for place, found in enumerate(races.values()):
        for (way, each), color, shift in zip(found.items(), (SERIAL, COLORS[0]), (-0.2, 0.2)):
            axes.bar(place + shift, np.mean(each["cpu"]), 0.4, color=color, label="" if place else way)
            axes.plot([place + shift] * len(each["cpu"]), each["cpu"], "o", color="black", ms=4)
    axes.set_xticks(range(len(races)), [f"{ids:,} ids" for ids in races])
    axes.set_ylabel("CPU time of a step (ms)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return axes


def draw_memory(before, grown, limit, needed):
    """Draw what each process had and by how much it grew, with its limit; below, what one process would need.

    Parameters
    ----------
    before, grown : dict of str to float
        Bytes by process; the one process is the first of them.
    limit : float
        The bytes that each may grow by.
    needed : float
        The bytes that the one process would grow by.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names = [*before, "one process"]
    had = np.array([*before.values(), next(iter(before.values()))]) / 1e9
    since = np.array([max(0, more) for more in grown.values()]) / 1e9
    _, axes = plt.subplots(figsize=(5, 3.6))
    axes.barh(names, had, color=SERIAL, label="before the tables")
    axes.barh(names[:-1], since, left=had[:-1], color=COLORS[0], label="since then")
    look = {"color": "white", "edgecolor": COLORS[1], "hatch": "//", "label": "would need"}
    axes.barh(names[-1:], needed / 1e9, left=had[-1:], **look)
    axes.plot(had + limit / 1e9, names, "k|", ms=16, mew=2, label="limit")
    axes.invert_yaxis()
    axes.set_xlabel("memory (GB)")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2)
    return axes


def allow_more(pids, size=None):
    """Let each of these processes reserve `size` bytes more than it has, and no more.

    Parameters
    ----------
    pids : iterable of int
        Processes of this user; it may be this one.
    size : float, optional
        Without it the limit is lifted.

    Returns
    -------
    bool
        False where the system knows no such limit (`RLIMIT_DATA` of Linux), so that nothing was set.
    """
    if not hasattr(psutil, "RLIMIT_DATA"):
        return False
    for process in map(psutil.Process, pids):
        _, hard = process.rlimit(psutil.RLIMIT_DATA)
        soft = hard if size is None else process.memory_info().data + int(size)
        if hard != psutil.RLIM_INFINITY:
            soft = min(soft, hard)
        process.rlimit(psutil.RLIMIT_DATA, (soft, hard))
    return True
