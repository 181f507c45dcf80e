"""The meters of lesson 18: CPU time and memory of processes, ways that take turns, a limit on memory, drawings."""

import os
import textwrap
import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import psutil

from helpers.plots import COLORS, SERIAL, median_and_range, table
from lesson_parts.rotation import take_turns
from lesson_parts.table_homes import loopback_bytes


def cpu_seconds(pids):
    """The CPU time (s) until now of each process: {name: seconds} of {name: pid}."""
    return {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in pids.items()}


def resident(pids):
    """What each process has in memory now: {name: bytes} of {name: pid}."""
    return {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}


def process_ids(cluster):
    """Name this kernel and the processes of a PSCluster: {"coordinator": pid, "worker 0": pid, "ps 0": pid, ...}."""
    return {"coordinator": os.getpid()} | {f"{role} {index}": pid for (role, index), pid in cluster.pids.items()}


def reserve_tables(shape, wanted):
    """How many tables of float32 this process may reserve at once, and what it is told; nothing is written.

    Parameters
    ----------
    shape : tuple of int
        Of each table.
    wanted : int
        How many at most.

    Returns
    -------
    int, str
    """
    tables = []
    try:
        for _ in range(wanted):
            tables.append(np.empty(shape, np.float32))
    except MemoryError as error:
        return len(tables), textwrap.fill(str(error), 78)
    return len(tables), "nothing was refused"


def perfect_memory(batch, rows, numbers):
    """Of each batch the share that one guesses right who knows the label of every id that an earlier batch had.

    Of the labels of new ids half are guessed right.

    Parameters
    ----------
    batch : callable
        batch(number) returns ids and labels.
    rows : int
        All ids are below it.
    numbers : iterable of int
        Of the batches, in order.

    Returns
    -------
    numpy.ndarray
        float, one for each batch.
    """
    met, right = np.zeros(rows, bool), []
    for number in numbers:
        ids = np.asarray(batch(number)[0])
        right.append((1 + met[ids].mean()) / 2)
        met[ids] = True
    return np.array(right)


def rows_of_servers(batch, rows, servers, factor):
    """How many rows each server sends for a batch, the mean of 50 batches; id i is in row i * factor % rows.

    Parameters
    ----------
    batch : callable
        batch(number) returns ids and labels.
    rows, servers : int
        Of the table, which is cut into consecutive shards of equal length.
    factor : int
        1 leaves each id in its own row.

    Returns
    -------
    numpy.ndarray
        float [servers].
    """
    total = np.zeros(servers)
    for number in range(50):
        ids = np.unique(batch(number)[0]).astype(np.int64)
        on_server = ids * factor % rows * servers // rows
        total += np.bincount(on_server, minlength=servers)
    return total / 50


def race(ways, pids, steps, turns=3):
    """Let ways of training take turns, each turn from another one on.

    Parameters
    ----------
    ways : dict of callable
        By name. Each trains `steps` steps.
    pids : dict of str to int
        All processes whose CPU time counts, by name, as `process_ids` returns them.
    steps, turns : int

    Returns
    -------
    dict
        Of each way a list for each meter, with a value for each turn: {"speeds": steps/s; "cpu", "workers", "servers",
        "busiest": CPU ms a step of all processes, of the workers, of the servers, and of the busiest server; "bytes":
        what the machine sent over its loopback interface a step; "results": what the way returned}.
    """

    def measured(run):
        before = cpu_seconds(pids)
        sent, began = loopback_bytes(), time.perf_counter()
        results = run()
        seconds = time.perf_counter() - began
        sent = loopback_bytes() - sent
        ms = {name: 1000 * (after - before[name]) / steps for name, after in cpu_seconds(pids).items()}
        servers = [ms[name] for name in ms if name.startswith("ps")]
        return {
            "speeds": steps / seconds,
            "cpu": sum(ms.values()),
            "workers": sum(ms[name] for name in ms if name.startswith("worker")),
            "servers": sum(servers),
            "busiest": max(servers),
            "bytes": sent / steps,
            "results": results,
        }

    found = take_turns({way: partial(measured, run) for way, run in ways.items()}, turns)
    return {way: {meter: [turn[meter] for turn in of_way] for meter in of_way[0]} for way, of_way in found.items()}


METERS = {  # the column's title, and digits behind the point
    "speeds": ("steps/s", 0),
    "cpu": ("CPU ms a step", 1),
    "servers": ("servers: CPU ms", 1),
    "workers": ("workers: CPU ms", 1),
}


def race_table(raced, meters=("speeds", "cpu")):
    """Tabulate what `race` returned: of each way the median of these meters, with the range, and the least MB a step.

    Parameters
    ----------
    raced : dict
        Its keys are str, or (str, rows of the table).
    meters : sequence of str
        Of METERS.

    Returns
    -------
    IPython.display.Markdown
    """
    lines = []
    for way, found in raced.items():
        name = way if isinstance(way, str) else f"{way[0]}, {way[1]:,} rows"
        columns = [median_and_range(found[meter], METERS[meter][1]) for meter in meters]
        if len(found["bytes"]) == 1:
            columns = [column.partition(" ")[0] for column in columns]  # one turn has no range
        lines.append([name, *columns, f"{min(found['bytes']) / 1e6:.2f}"])
    return table(["", *(METERS[meter][0] for meter in meters), "MB a step"], lines)


def tabulate_plans(columns, plans):
    """Show plans side by side: a line for each of their numbers, below 10 with one digit behind the point.

    Parameters
    ----------
    columns : list of str
        The title of the lines, and one for each plan.
    plans : list of dict of str to float

    Returns
    -------
    IPython.display.Markdown
    """
    lines = []
    for name in plans[0]:
        values = [plan[name] for plan in plans]
        digits = [1 if isinstance(value, float) and value < 10 else 0 for value in values]
        lines.append([name, *(f"{value:,.{number}f}" for value, number in zip(values, digits, strict=True))])
    return table(columns, lines)


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
    _, axes = plt.subplots(figsize=(5, 3))
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
        "Keras 3 SGD": (0, 16, "center", 1.25),
    }
    _, axes = plt.subplots(figsize=(5, 3.8))
    for (way, (right, up, align, shift)), color in zip(places.items(), COLORS[:3], strict=True):
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


def draw_scattered(as_they_are, even):
    """Draw how many rows of a batch each server sends, with ids as they are and scattered.

    Parameters
    ----------
    as_they_are, even : numpy.ndarray
        From `rows_of_servers`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    at = np.arange(len(even))
    _, axes = plt.subplots(figsize=(5, 3.2))
    axes.bar(at - 0.2, as_they_are, 0.4, color=COLORS[1], label="as they are")
    axes.bar(at + 0.2, even, 0.4, color=COLORS[0], label="scattered")
    axes.set(xticks=at, xticklabels=[f"ps {server}" for server in at], ylabel="different rows of a batch")
    axes.legend()
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
