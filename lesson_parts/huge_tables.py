"""The meters of lesson 18: CPU time and memory of processes, ways that take turns, a limit on memory, drawings."""

import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import psutil

from helpers.plots import COLORS, SERIAL
from lesson_parts.table_homes import loopback_bytes, take_turns


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
        Each trains `steps` steps.
    pids : dict of str to int
        All processes whose CPU time counts, by name.
    steps, turns : int

    Returns
    -------
    dict
        Of each way a list of a number for each turn: {"speeds": steps/s, "cpu": ms of all processes a step, "bytes":
        what the machine sent over its loopback interface a step}.
    """

    def measured(run):
        cpu, sent, began = cpu_seconds(pids), loopback_bytes(), time.perf_counter()
        run()
        seconds = time.perf_counter() - began
        return {
            "speeds": steps / seconds,
            "cpu": 1000 * (cpu_seconds(pids) - cpu) / steps,
            "bytes": (loopback_bytes() - sent) / steps,
        }

    found = take_turns({way: partial(measured, run) for way, run in ways.items()}, turns)
    meters = "speeds", "cpu", "bytes"
    return {way: {meter: [turn[meter] for turn in all_turns] for meter in meters} for way, all_turns in found.items()}


def draw_time(ways, parts):
    """Draw a step's CPU time as a bar for each way, made of its parts.

    Parameters
    ----------
    ways : list of str
    parts : dict of str to list of float
        Of each part its ms in each way.

    Returns
    -------
    matplotlib.axes.Axes
    """
    _, axes = plt.subplots(figsize=(5, 2.6))
    ends = np.zeros(len(ways))
    for (name, sizes), color in zip(parts.items(), (SERIAL, COLORS[1], COLORS[0]), strict=True):
        axes.barh(ways, sizes, left=ends, color=color, height=0.6, label=name)
        ends = ends + sizes
    for way, end in zip(ways, ends):
        axes.text(end, way, f" {end:.1f}", va="center")
    axes.set(xlim=(0, 1.12 * max(ends)), xlabel="CPU time of a step, all processes (ms)")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.35), ncols=len(parts), frameon=False)
    return axes


def draw_work(found):
    """Draw what the servers do in a step against the rows of the table: a dot is the median, a bar the range.

    Parameters
    ----------
    found : dict of (str, int) to list of float
        Of each optimizer and number of rows the CPU time (ms) of all servers a step, in each round.

    Returns
    -------
    matplotlib.axes.Axes
    """
    places = {  # where a label stands from its last dot (points), its alignment, and what keeps dots apart
        "our sparse Adagrad": (0, -24, "right", 1),
        "Keras 3 Adagrad": (8, -4, "left", 1),
        "Keras 3 Adagrad, rows only": (0, 12, "center", 0.8),
        "Keras 3 SGD": (0, -24, "center", 1.25),
    }
    _, axes = plt.subplots(figsize=(5, 3.8))
    for (way, (right, up, align, shift)), color in zip(places.items(), COLORS, strict=True):
        sizes = sorted(rows for other, rows in found if other == way)
        turns = np.array([found[way, rows] for rows in sizes])
        middle = np.median(turns, axis=1)
        spread = [middle - turns.min(axis=1), turns.max(axis=1) - middle]
        at = shift * np.array(sizes)
        axes.errorbar(at, middle, spread, fmt="o-", color=color, ms=5)
        axes.annotate(way, (at[-1], middle[-1]), (right, up), ha=align, textcoords="offset points", color=color)
    axes.set(xscale="log", yscale="log", ylim=(1, 150))
    axes.set(xlabel="rows of the table", ylabel="CPU time of the servers, a step (ms)")
    axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    return axes


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
    axes.text(needed / 2e9, len(names) - 1, "by the rule", ha="center", va="center", bbox={"fc": "white", "ec": "none"})
    axes.set(xlim=(0, 1.2 * needed / 1e9), ylim=(len(names) - 0.5, -1), xlabel="growth since before the tables (GB)")
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
