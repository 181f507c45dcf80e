"""Of lesson 20: processes that are killed or stand still, what is counted around a death, and the three pictures.

A log is an array with a row for each step: when it ended, who took it, its loss, its staleness. The moments of a fault
are a dict of `time.time()`: of the "death", and if nobody goes on of the "error" that tells of it, of the call "again",
and when the new processes are "ready".
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
import psutil
import tensorflow as tf
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from helpers.plots import COLORS, SERIAL
from lesson_parts.three_ways import OnServer

WAITS = ("#c8c8c8", "#ececec", "#a8a8a8")  # the parts of a wait, in their order

STAND_STILL = """
import os, signal, sys, time
pid, seconds = int(sys.argv[1]), float(sys.argv[2])
os.kill(pid, signal.SIGSTOP)
time.sleep(0.05)  # until all its threads stand
begin = time.time()
time.sleep(seconds)
print(begin, time.time())
os.kill(pid, signal.SIGCONT)
"""


def wait_for(condition, seconds=120):
    """Ask condition() again and again until it is true; AssertionError if it is not in time."""
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline, "it did not happen"
        time.sleep(0.01)


def kill_when(is_time, *pids):
    """Kill processes by SIGKILL, in a thread of its own, a tenth of a second after `is_time()` is true.

    Parameters
    ----------
    is_time : callable
        Takes nothing; asked again and again.
    *pids : int

    Returns
    -------
    concurrent.futures.Future
        Its result will be the moment of the death.
    """
    processes = [psutil.Process(pid) for pid in pids]  # fails at once if one is gone

    def kill():
        wait_for(is_time)
        time.sleep(0.1)
        moment = time.time()
        for process in processes:
            process.kill()
        return moment

    with_thread = ThreadPoolExecutor(1)
    killing = with_thread.submit(kill)
    with_thread.shutdown(wait=False)  # it ends after its only task
    return killing


def stand_still(pid, seconds=1.0):
    """Send a process SIGSTOP, and SIGCONT some seconds later; returns begin and end, as `time.time()` says them.

    A process of its own does it. TensorFlow's coordinator holds Python's lock while it copies the data of a call to a
    worker: if that worker stands still, so does this process, and could not wake it.
    """
    command = [sys.executable, "-c", STAND_STILL, str(pid), str(seconds)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    begin, end = map(float, said.split())
    return begin, end


class Moments(dict):
    """The moments of each fault: {who died: {what: when}}."""

    def note(self, died, what, when=None):
        """Note that something is now, or was at `when`; a "death" deletes what was noted of that fault before."""
        if what == "death":
            self[died] = {}
        self[died][what] = time.time() if when is None else when


class CountedOnServer(OnServer):
    """Tables on a parameter server that counts the pushes of each of two workers.

    Attributes
    ----------
    pushed : tf.Variable
        int64 [2], on the server.
    """

    def __init__(self, cluster, tables):
        super().__init__(cluster, tables)
        with cluster.strategy.scope():
            self.pushed = tf.Variable([0, 0], dtype=tf.int64)

    def reset(self, tables=None):
        """Start again, with version 0 and no pushes, from these tables or from those of the beginning."""
        super().reset(tables)
        self.pushed.assign([0, 0])

    def count(self, row):
        """Count the push that a row of the log tells of; returns the row."""
        with tf.control_dependencies([row]):
            one = tf.one_hot(tf.cast(row[1], tf.int64), 2, dtype=tf.int64)
            self.pushed.assign_add(one)
        return row


# ---- Around a death


def joined(before, after, moments):
    """The log of what came before a death and after it, without the time between the error and the call again."""
    after = np.array(after)
    after[:, 0] -= moments["again"] - moments["error"]
    return np.concatenate([before, after])


def parts_of_wait(after, moments):
    """What the time from a death to the next step went into: {what: seconds}; `after` is the log from then on."""
    first_step = np.array(after)[:, 0].min()
    return {
        "until the error": moments["error"] - moments["death"],
        "restart": moments["ready"] - moments["again"],
        "until the first step": first_step - moments["ready"],
    }


def longest_gaps(log, death):
    """The longest times in seconds between two steps that follow each other: up to the death (or nan), from it on."""
    when = np.sort(log[:, 0])
    before, after = when[when <= death], when[when > death]
    longest = np.diff(before).max() if len(before) > 1 else np.nan
    return longest, np.diff(after, prepend=death).max()


def last_authors(log, steps=100):
    """Who took the steps that ended last: a set of numbers."""
    by_time = log[log[:, 0].argsort()]
    return set(by_time[-steps:, 1].astype(int))


def with_gaps(rows, logs, moments):
    """The rows of a table, each with the `longest_gaps` of a log, in seconds.

    Parameters
    ----------
    rows : list of list of str
        Each begins with who died.
    logs, moments : dict
        {who died: the log} and {who died: {"death": when}}.

    Returns
    -------
    list of list of str
    """
    found = []
    for died, *others in rows:
        gaps = longest_gaps(logs[died], moments[died]["death"])
        found.append([died, *others, *(f"{gap:.2f} s" for gap in gaps)])
    return found


# ---- Pictures


def draw_steps(logs, moments, waits, *, together=(), pale, title):
    """Draw who takes steps around a death, a mark for each: above the second after it, below all of it.

    Parameters
    ----------
    logs : dict of str to array
        {who died: the log}.
    moments : dict of str to dict
        {who died: {"death": when}}.
    waits : dict of str to dict of str to float
        {who died: {what was waited for: seconds}}, one after the other from the death on: grey, in the lower panel. All
        have the same parts; those of more than a second are written there.
    together : collection of str
        Those whose steps are steps of both numbers: one lane.
    pale : dict of str to slice
        {who died: the rows of its log that are batches done before}.
    title : str
    """
    figure, (near, whole) = plt.subplots(2, figsize=(4.8, 5.8))
    deaths = {name: moments[name]["death"] for name in logs}
    ends = {name: log[:, 0].max() - deaths[name] for name, log in logs.items()}
    last = max(ends.values())
    for panel, left, right in ((near, -0.5, 1), (whole, -0.07 * last, 1.15 * last)):
        for row, (name, log) in enumerate(logs.items()):
            is_pale = np.zeros(len(log), bool)
            is_pale[pale.get(name, slice(0))] = True
            lanes = [(0, 0.5, SERIAL)] if name in together else [(0, 0, COLORS[0]), (1, 1, COLORS[1])]
            for who, below, color in lanes:
                for chosen, shade in ((~is_pale, color), (is_pale, _pale(color))):
                    when = log[chosen & (log[:, 1] == who), 0] - deaths[name]
                    when = when[(left < when) & (when < right)]
                    lane = 2.5 * row + below
                    panel.eventplot(when, lineoffsets=lane, linelengths=0.8, linewidths=0.7, colors=[shade])
        panel.axvline(0, color="k", lw=1)
        panel.set(xlim=(left, right), ylim=(2.5 * len(logs) - 0.9, -0.8), xlabel="seconds since the death")
        lanes, names = _lanes(logs, together)
        panel.set_yticks(lanes, names, fontsize=9)
        panel.grid(False)
    for row, name in enumerate(logs):
        _draw_wait(whole, 2.5 * row + 0.5, waits.get(name, {}))
        whole.text(ends[name], 2.5 * row + 0.5, "  all done", va="center", fontsize=8)
    parts = [Patch(color=color, label=what) for what, color in zip(next(iter(waits.values())), WAITS)]
    parts.append(Patch(color=_pale(COLORS[0]), label="batches done before"))
    figure.legend(handles=parts, loc="outside lower center", ncols=2, fontsize=8, columnspacing=1)
    figure.suptitle(title, x=0.02, ha="left")
    plt.show()


def _pale(color):
    """A colour, mixed with white."""
    return tuple(0.65 + 0.35 * part for part in to_rgb(color))


def _draw_wait(panel, middle, wait):
    """Draw the parts of a wait, {what: seconds}, from 0 on."""
    since = 0
    for (_, seconds), color in zip(wait.items(), WAITS):
        panel.barh(middle, seconds, height=1.5, left=since, color=color, linewidth=0)
        if seconds > 1:
            panel.text(since + seconds / 2, middle, f"{seconds:.1f} s", ha="center", va="center", fontsize=9)
        since += seconds


def _lanes(logs, together):
    """The places of the lanes of `draw_steps`, and their names."""
    places, names = [], []
    for row, name in enumerate(logs):
        if name in together:
            places.append(2.5 * row + 0.5)
            names.append(f"{name}: both")
        else:
            places += [2.5 * row, 2.5 * row + 1]
            names += [f"{name}: 0", f"{name}: 1"]
    return places, names


def draw_call(batches, pushed, *, title):
    """Draw the batches of a call that worker 1 had pushed when killed, the one in work, and all of them by worker 0.

    Parameters
    ----------
    batches : int
        Of the call.
    pushed : int
        The first so many, by worker 1.
    title : str
    """
    figure, axis = plt.subplots(figsize=(4.8, 2.4))
    for row, (color, done) in enumerate(((COLORS[1], pushed), (COLORS[0], batches))):
        for batch in range(batches):
            is_done = batch < done
            look = {"color": color} if is_done else {"facecolor": "none", "edgecolor": SERIAL, "ls": ":"}
            axis.add_patch(plt.Rectangle((batch + 0.06, row - 0.3), 0.88, 0.6, **look))
            number_color = "white" if is_done else SERIAL
            axis.text(batch + 0.5, row, batch + 1, color=number_color, ha="center", va="center")
    if pushed < batches:
        axis.add_patch(plt.Rectangle((pushed + 0.06, -0.3), 0.44, 0.6, color=_pale(COLORS[1])))
    axis.plot([pushed + 0.5] * 2, [-0.55, -0.3], color="k")
    axis.text(pushed + 0.5, -0.6, "killed", ha="center", va="bottom")
    axis.set(xlim=(-0.1, batches + 0.1), ylim=(1.5, -1.05), title=title)
    axis.set_yticks([0, 1], ["worker 1", "worker 0,\nthe same call"])
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.grid(visible=False)
    plt.show()


def draw_again(before, again, first, new, *, title, smooth=20):
    """Draw the loss of each batch, and once more of the batches that were done again.

    Parameters
    ----------
    before, again : float array [batches]
        Losses, in the order of the batches.
    first : int
        The number of the first batch that was done again.
    new : float
        The loss of new tables.
    title : str
    smooth : int
        A point is the mean of so many batches.
    """
    figure, axis = plt.subplots(figsize=(4.8, 3.6))
    for losses, begin, color, width, alpha, name in (
        (before, 0, SERIAL, 6, 0.4, "before the death"),
        (again, first, COLORS[1], 1.5, 1, "from the file on"),
    ):
        means = losses[: len(losses) // smooth * smooth].reshape(-1, smooth).mean(axis=1)
        middles = begin + smooth * (np.arange(len(means)) + 0.5)
        axis.plot(middles, means, color=color, lw=width, alpha=alpha, label=name)
    axis.axhline(new, color="k", ls=":", lw=1, label="new tables")
    axis.axvline(first, color="k", lw=1)
    axis.text(first, new, " the file", va="top")
    axis.set(xlabel="number of the batch", ylabel=f"loss, mean of {smooth} batches", title=title)
    axis.margins(y=0.12)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    plt.show()
