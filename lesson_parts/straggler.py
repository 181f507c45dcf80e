"""A straggler: a process of this machine that is slowed down.

Inside `with slowed(pid, 5):` that process gets a fifth of the time: it is stopped and woken 200 times a second.
"""

import json
import os
import select
import sys
import time
from contextlib import contextmanager, suppress

import psutil

from helpers.cluster.processes import start_child


@contextmanager
def slowed(pid, times, run=0.001, busy=False):
    """Inside the `with` block a process runs for a moment, stands still for longer, runs again, and so on.

    A child of ours does it, and wakes the process when the block ends, also when this process is killed.

    Parameters
    ----------
    pid : int
        The process.
    times : float
        Above 1: for each moment that it runs it stands still `times` - 1 times as long.
    run : float
        Seconds of a moment. A short one makes an evenly slow process (whatever it does takes `times` as long), one
        longer than a batch makes a process that pauses.
    busy : bool
        Whether our child computes while the process stands still, so that a pause frees no core.

    Yields
    ------
    list of [float, float]
        Filled when the block ends: begin and end of each pause, as `time.time()` says them.

    Raises
    ------
    ValueError
        For times <= 1, for run <= 0, for this process itself and for a pid that is no process.
    """
    if times <= 1 or run <= 0:
        raise ValueError(f"times={times}, run={run}: a process runs for a while and is slowed by a factor above 1")
    if pid == os.getpid():
        raise ValueError(f"pid={pid} is this process, which could not wake itself")
    if not psutil.pid_exists(pid):
        raise ValueError(f"pid={pid} is no process of this machine")
    process = psutil.Process(pid)
    brake = start_child("lesson_parts.straggler", pid, times, run, int(busy))
    pauses = []
    try:
        brake.stdout.readline()
        if not process.is_running():  # the brake may have found another one that got its id
            raise ValueError(f"pid={pid} ended just now")
        yield pauses
    finally:
        said, _ = brake.communicate()
        pauses += json.loads(said or "[]")  # nothing if the process was killed meanwhile


def main(pid, times, run, busy):
    """Suspend and resume a process until our stdin closes, then print when it stood.

    How long it really ran decides how long it stands.
    """
    process, pauses = psutil.Process(pid), []
    print("slowed", flush=True)
    resumed = time.monotonic()
    while not _told_to_end(run):
        process.suspend()
        suspended, begin = time.monotonic(), time.time()
        try:
            _pass((times - 1) * (suspended - resumed), busy)
        finally:
            pauses.append((begin, time.time()))
            process.resume()
        resumed = time.monotonic()
    with suppress(BrokenPipeError):  # nobody is left to read it
        os.write(sys.stdout.fileno(), json.dumps(pauses).encode())


def _pass(seconds, busy):
    """Sleep, or compute, for so long, or until we are told to end."""
    if not busy:
        _told_to_end(seconds)
        return
    until = time.monotonic() + seconds
    while time.monotonic() < until and not _told_to_end(0):
        sum(range(10_000))


def _told_to_end(seconds):
    return bool(select.select([sys.stdin], [], [], seconds)[0])


if __name__ == "__main__":
    with suppress(psutil.NoSuchProcess):  # killed meanwhile, as a lesson does
        main(int(sys.argv[1]), *map(float, sys.argv[2:]))
