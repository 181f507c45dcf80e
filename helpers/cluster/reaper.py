"""Child processes: started, killed with all that they have started, and cleaned up after, also when we are killed.

As a program it is the reaper: reads process ids from its standard input, one a line, and when that closes kills what is
left of them and removes their folder. It keeps psutil's Process objects, which refuse to kill a later process that was
given the id of one of ours.
"""

import contextlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil


def start_child(module, *arguments, **options):
    """A Popen of `python -m helpers.cluster.MODULE`, with pipes. Ctrl-C does not reach it; our end closes its stdin."""
    command = [sys.executable, "-m", f"helpers.cluster.{module}", *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True, **pipes, **options)


def start_reaper(folder):
    """A Popen: write ids to its `stdin`; `communicate()` ends it, what is left of those processes, and the folder."""
    return start_child("reaper", folder)


def kill(processes, timeout=10):
    """Kill these psutil.Process objects and their children, and wait until they have ended. Some may be gone already.

    Who lost its parent may stay a zombie for seconds, or for ever where a container's first process collects none.
    """
    family = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            family += [*process.children(recursive=True), process]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + timeout
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            while process.status() != psutil.STATUS_ZOMBIE and process.is_running() and time.monotonic() < deadline:
                time.sleep(0.01)
            process.wait(0)  # a child of ours is no zombie any more


def tail(log, lines=10):
    """The last lines of a log file."""
    text = Path(log).read_text(errors="replace") if Path(log).is_file() else "(its log is not on this host)"
    return "\n".join(text.splitlines()[-lines:])


def main(folder):
    found = []
    for line in sys.stdin:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(int(line)))
    kill(found)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
