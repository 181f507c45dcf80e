"""The meters of lesson 18: CPU time and memory of processes, ways that take turns, and a limit on memory."""

import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import psutil

from helpers.plots import COLORS
from lesson_parts.table_homes import take_turns


def cpu_seconds(pids, role=""):
    """The CPU time (s) until now of all processes in {name: pid} with `role` in their names."""
    some = [psutil.Process(pid) for name, pid in pids.items() if role in name]
    return sum(sum(process.cpu_times()[:2]) for process in some)


def resident(pids):
    """What each process has in memory now: {name: bytes} of {name: pid}."""
    return {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}


def race(ways, pids, steps, turns=5):
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


def draw_memory(grown, limit, needed):
    """Draw by how much each process has grown, and the limit; below, what one process would need.

    Parameters
    ----------
    grown : dict of str to float
        Bytes by process.
    limit : float
        The bytes that each may grow by.
    needed : float
        The bytes that one process would grow by.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names = [*grown, "one process"]
    sizes = np.array([*(max(0, more) for more in grown.values()), needed]) / 1e9
    _, axes = plt.subplots(figsize=(5, 3.4))
    axes.barh(names[:-1], sizes[:-1], color=COLORS[0])
    axes.barh(names[-1:], sizes[-1:], color="white", edgecolor=COLORS[1], hatch="//")
    for name, size in zip(names, sizes):
        axes.text(size, name, f" {size:.2f}", va="center")
    axes.axvline(limit / 1e9, color="black", lw=2)
    axes.text(limit / 1e9, -0.6, f"limit {limit / 1e9:.2f} ", ha="right", va="center")
    axes.text(needed / 2e9, len(names) - 1, "would need", ha="center", va="center", bbox={"fc": "white", "ec": "none"})
    axes.set(xlim=(0, 1.2 * needed / 1e9), ylim=(len(names) - 0.5, -1), xlabel="memory since before the tables (GB)")
    axes.grid(axis="y", visible=False)
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
