"""Child processes: started, killed with all that they have started, and cleaned up after, also when we are killed.

As a program, `start_child("reaper", folder)`, it reads process ids from its standard input, one a line, and when that
closes (`communicate()`) kills what is left of them and removes their folder. It keeps psutil's Process objects, which
refuse to kill a later process that was given the id of one of ours.
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


def kill(processes, timeout=10):
    """Kill these psutil.Process objects and their children, and wait until they have ended. Some may be gone already.

    A zombie has ended when it has no other thread: nobody may ever collect one that lost its parent in a container.
    """
    family = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            family += [*process.children(recursive=True), process]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    end = time.monotonic() + timeout
    for process in family:
        while not ended(process) and time.monotonic() < end:
            time.sleep(0.01)
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            process.wait(0)  # a child of ours is no zombie any more


def ended(process):
    """Whether this psutil.Process has ended: it is gone, or a zombie without another thread; see `kill`."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.is_running() or (process.status(), process.num_threads()) == (psutil.STATUS_ZOMBIE, 1)
    return True


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
