"""Of lesson 20: waiting for something to happen, a process that stands still, and the two pictures.

A log is an array with a row for each step: when it ended, who took it, its loss, its staleness.
"""

import subprocess
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL

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


def stand_still(pid, seconds=1.0):
    """Send a process SIGSTOP, and SIGCONT some seconds later; returns begin and end, as `time.time()` says them.

    A process of its own does it. TensorFlow's coordinator holds Python's lock while it copies the data of a call to a
    worker: if that worker stands still, so does this process, and could not wake it.
    """
    command = [sys.executable, "-c", STAND_STILL, str(pid), str(seconds)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    begin, end = map(float, said.split())
    return begin, end


def draw_steps(logs, deaths, holes, *, together=(), title):
    """Draw who takes steps around a death, a mark for each: above the second after it, below all of it.

    Parameters
    ----------
    logs : dict of str to array
        {who died: the log}.
    deaths : dict of str to float
        When.
    holes : dict of str to float
        The longest time without a step, in seconds. Those of more than a second stand in their gaps in the lower panel.
    together : collection of str
        Those whose steps are steps of both numbers: one lane.
    title : str
    """
    figure, (near, whole) = plt.subplots(2, figsize=(4.8, 6))
    end = max(log[:, 0].max() - deaths[name] for name, log in logs.items())
    for panel, left, right in ((near, -0.5, 1), (whole, -0.07 * end, 1.02 * end)):
        for row, (name, log) in enumerate(logs.items()):
            lanes = [(0, 0.5, SERIAL)] if name in together else [(0, 0, COLORS[0]), (1, 1, COLORS[1])]
            for who, below, color in lanes:
                when = log[log[:, 1] == who, 0] - deaths[name]
                when = when[(left < when) & (when < right)]
                lane = 2.5 * row + below
                panel.eventplot(when, lineoffsets=lane, linelengths=0.8, linewidths=0.7, colors=color)
        panel.axvline(0, color="k", lw=1)
        panel.set(xlim=(left, right), ylim=(2.5 * len(logs) - 0.9, -0.8), xlabel="seconds since the death")
        panel.set_yticks(2.5 * np.arange(len(logs)) + 0.5, logs)
        panel.grid(False)
    for row, hole in enumerate(holes.values()):
        if hole > 1:
            whole.text(hole / 2, 2.5 * row + 0.5, f"{hole:.1f} s", ha="center", va="center")
    for color, of in ((COLORS[0], "of number 0"), (COLORS[1], "of number 1"), (SERIAL, "of both")):
        near.plot([], [], color=color, lw=6, label=of)
    figure.legend(loc="outside lower center", ncols=3, title="steps")
    figure.suptitle(title, x=0.02, ha="left")
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
