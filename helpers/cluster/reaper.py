"""A child process that cleans up after us, also when we are killed: its standard input closes then.

Reads process ids, one a line, kills what is left of them at the end and removes their folder. It keeps psutil's Process
objects, which refuse to kill a later process that was given the id of one of ours.
"""

import contextlib
import shutil
import subprocess
import sys

import psutil


def start_reaper(folder):
    """A Popen: write ids to its `stdin`; `communicate()` ends it, what is left of those processes, and the folder."""
    command = [sys.executable, __file__, folder]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)


def kill(processes):
    """Kill these psutil.Process objects and their children; returns them all. Those that have ended do not matter."""
    family = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            family += [*process.children(recursive=True), process]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return family


def main():
    found = []
    for line in sys.stdin:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(int(line)))
    psutil.wait_procs(kill(found), timeout=10)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
