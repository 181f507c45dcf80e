"""Processes of this machine slowed down, and the memory that more of them can have.

with slowed(pid, 5):
    ...  # that process now gets a fifth of the time: it is stopped and woken 200 times a second
"""

import os
import select
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from helpers.cluster.reaper import start_child

CGROUP = Path("/sys/fs/cgroup")  # of a container, with its limit


@contextmanager
def slowed(pid, times, run=0.001):
    """Inside the `with` block process `pid` runs for a moment, stands still `times` - 1 times as long, and so on.

    times: a number above 1. run: seconds of a moment. A short one makes an evenly slow process (whatever it does takes
    `times` as long), one longer than a batch makes a process that pauses.
    A child of ours does it, and wakes the process when the block ends, also when this process is killed.
    ValueError for times <= 1, for run <= 0, for this process itself and for a pid that is no process.
    """
    if times <= 1 or run <= 0:
        raise ValueError(f"times={times}, run={run}: a process runs for a while and is slowed by a factor above 1")
    if pid == os.getpid():
        raise ValueError(f"pid={pid} is this process, which could not wake itself")
    if not psutil.pid_exists(pid):
        raise ValueError(f"pid={pid} is no process of this machine")
    process = psutil.Process(pid)
    brake = start_child("processes", pid, times, run)
    try:
        brake.stdout.readline()
        if not process.is_running():  # the brake may have found another one that got its id
            raise ValueError(f"pid={pid} ended just now")
        yield
    finally:
        brake.communicate()


def main(pid, times, run):
    """Suspend and resume a process until our stdin closes. How long it really ran decides how long it stands."""
    process = psutil.Process(pid)
    print("slowed", flush=True)
    resumed = time.monotonic()
    while not _told_to_end(run):
        process.suspend()
        suspended = time.monotonic()
        try:
            _told_to_end((times - 1) * (suspended - resumed))
        finally:
            process.resume()
        resumed = time.monotonic()


def _told_to_end(seconds):
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def available():
    """Bytes that new processes can have: what the machine has left, or less if a container's limit comes first.

    Files that the container has read and not lately used (inactive_file) count as free: the kernel drops them first.
    """
    left = psutil.virtual_memory().available
    limit = CGROUP / "memory.max"
    if limit.exists() and (most := limit.read_text().strip()) != "max":
        statistics = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        used = int((CGROUP / "memory.current").read_text()) - int(statistics["inactive_file"])
        left = min(left, int(most) - used)
    return left


if __name__ == "__main__":
    with suppress(psutil.NoSuchProcess):  # killed meanwhile, as notebook 08 does
        main(int(sys.argv[1]), *map(float, sys.argv[2:]))
