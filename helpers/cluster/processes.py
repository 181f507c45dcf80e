"""A slow process, made from a real one of this machine: it is stopped and woken many times a second.

    with slowed(pid, 5):
        ...  # that process now gets a fifth of the time
"""

import os
import select
import subprocess
import sys
import threading
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
        [sys.executable, "-m", "helpers.cluster.processes", str(pid), str(times)],
        cwd=Path(__file__).parents[2],
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


CGROUP = Path("/sys/fs/cgroup")  # of a container, with its limit


def available():
    """Bytes that new processes can have: what the machine has left, or less if a container's limit comes first."""
    left = psutil.virtual_memory().available
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if limit.exists() and limit.read_text().strip() != "max":
        left = min(left, int(limit.read_text()) - int(used.read_text()))
    return left


class MemoryWatch:
    """A thread that notes the resident memory of processes until `stop`.

    pids: dict, name -> process id. every: seconds between two samples.
    seconds: list of float, since the start; sizes: dict, name -> list of bytes, one for each of the seconds (0 once the
    process has ended); marks: list of (second, text).
    """

    def __init__(self, pids, every=0.2):
        self.seconds, self.sizes, self.marks = [], {name: [] for name in pids}, []
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._every, self._started, self._ended = every, time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mark(self, text):
        """Note that something begins now."""
        self.marks.append((time.monotonic() - self._started, text))

    def peak(self, name):
        """The most that this process has had at any sample, in bytes."""
        return max(self.sizes[name])

    def stop(self):
        """Take the last sample. Can be called twice."""
        self._ended.set()
        self._thread.join()

    def _run(self):
        while True:
            last = self._ended.wait(self._every if self.seconds else 0)
            for name, process in self._processes.items():
                self.sizes[name].append(resident(process))
            self.seconds.append(time.monotonic() - self._started)
            if last:
                return


def resident(process):
    """Bytes of a psutil.Process in memory, 0 if it is no more."""
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
