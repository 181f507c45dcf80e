"""Processes of this machine slowed down, and their memory watched.

with slowed(pid, 5):
    ...  # that process now gets a fifth of the time: it is stopped and woken 200 times a second
"""

import os
import select
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

RUN_SECONDS = 0.001  # between two stops: well below a batch, so that each batch takes longer, not every tenth


@contextmanager
def slowed(pid, times, run=RUN_SECONDS):
    """Inside the `with` block process `pid` runs for a moment, stands still `times` - 1 times as long, and so on.

    times: a number above 1. run: seconds of a moment. A short one makes an evenly slow process (whatever it does takes
    `times` as long), one longer than a batch makes a process that pauses.
    A child of ours does it, and wakes the process when the block ends, also when this process is killed.
    ValueError for times <= 1, for run <= 0, for this process itself and for a pid that is no process.
    """
    if times <= 1 or run <= 0:
        raise ValueError(f"times={times}, run={run}: a process runs for a while and is slowed by a factor above 1")
    process = _other(pid)
    brake = subprocess.Popen(
        [sys.executable, "-m", "helpers.cluster.processes", str(pid), str(times), str(run)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        brake.stdout.readline()
        if not process.is_running():  # the brake may have found another one that got its id
            raise ValueError(f"pid={pid} ended just now")
        yield
    finally:
        brake.communicate()


def _other(pid):
    """The psutil.Process of this id, which stays that process when the id is given to another one."""
    if pid == os.getpid():
        raise ValueError(f"pid={pid} is this process, which could not wake itself")
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        raise ValueError(f"pid={pid} is no process of this machine") from None


def main(pid, times, run):
    """Slow the process until our stdin closes or the process ends."""
    with suppress(psutil.NoSuchProcess):  # killed meanwhile, as notebook 08 does
        brake(psutil.Process(pid), times, run)


def brake(process, times, run):
    """Suspend and resume a psutil.Process until our stdin closes. How long it really ran decides how long it stands."""
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


CGROUP = Path("/sys/fs/cgroup")  # of a container, with its limit


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
    """Bytes of a psutil.Process in memory, 0 if it is no more (also when another process has its id now)."""
    try:
        return process.memory_info().rss if process.is_running() else 0
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(float, sys.argv[2:]))
