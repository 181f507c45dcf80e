"""A slow process, made from a real one of this machine: it is stopped and woken many times a second.

    with slowed(pid, 5):
        ...  # that process now gets a fifth of the time
"""

import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

RUN_SECONDS = 0.01  # how long the slowed process runs between two stops


@contextmanager
def slowed(pid, times):
    """Inside the `with` block process `pid` runs 10 ms, stands still `times` - 1 times as long, and so on.

    A child of ours does it, and wakes the process when the block ends, also when this process is killed.
    times: a number above 1. ValueError for another, for this process itself and for a pid that is no process.
    """
    if times <= 1:
        raise ValueError(f"times={times}: a process is slowed by a factor above 1")
    if pid == os.getpid() or not psutil.pid_exists(pid):
        what = "this process, which could not wake itself" if pid == os.getpid() else "no process of this machine"
        raise ValueError(f"pid={pid} is {what}")
    brake = subprocess.Popen(
        [sys.executable, "-m", "helpers.straggler", str(pid), str(times)],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        brake.stdout.readline()
        yield
    finally:
        brake.communicate()


def main(pid, times):
    """Slow the process until our stdin closes or the process ends."""
    process = psutil.Process(pid)
    print("slowed", flush=True)
    while process.is_running():
        started = time.monotonic()
        if _told_to_end(RUN_SECONDS):
            return
        try:
            process.suspend()
            end = _told_to_end((times - 1) * (time.monotonic() - started))
            process.resume()
        except psutil.NoSuchProcess:  # killed meanwhile, as notebook 08 does
            return
        if end:
            return


def _told_to_end(seconds):
    return bool(select.select([sys.stdin], [], [], seconds)[0])


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
