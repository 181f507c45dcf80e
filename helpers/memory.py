"""How much memory there is, and how much of it some processes use while time passes."""

import threading
import time
from pathlib import Path

import psutil

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
