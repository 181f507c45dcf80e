"""Child processes: started, killed with all that they have started, and cleaned up after, also when we are killed.

As a program this file is the watcher of a `Family`: it reads process ids from its standard input, one a line. When that
closes, because the family is closed or the process that owns it was killed, it kills what is left of them and removes
the family's folder. It keeps psutil's Process objects, which refuse to kill a later process with the same id.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil


class Family(contextlib.AbstractContextManager):
    """Processes of this machine that end with this one, however it ends, and a folder that goes with them.

    Parameters
    ----------
    name : str
        The folder's name begins with it.
    directory : str, optional
        Where the folder is made; by default where temporary files are.

    Attributes
    ----------
    folder : Path
        For logs and other files of the processes.
    members : list of psutil.Process
        Those that were started or adopted.
    """

    def __init__(self, name, directory=None):
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=directory))
        self.members = []
        self._watcher = start_child("helpers.cluster.processes", self.folder)

    def start(self, command, *, log, env=None):
        """Start a process that Ctrl-C does not reach.

        Parameters
        ----------
        command : list of str
            The program and its arguments.
        log : Path
            The file that gets all its output.
        env : dict, optional
            Environment variables, added to those of this process.

        Returns
        -------
        psutil.Popen
            The process.
        """
        with open(log, "ab") as output:
            process = psutil.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self._add(process)
        return process

    def adopt(self, pid):
        """Let a process that somebody else started end with the family too."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._add(psutil.Process(pid))

    def _add(self, process):
        self.members.append(process)
        print(process.pid, file=self._watcher.stdin, flush=True)

    def close(self):
        """Kill all members with their children and remove the folder. Can be called twice."""
        kill(self.members)
        if not self._watcher.stdin.closed:
            self._watcher.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *exc):
        self.close()


def start_child(module, *arguments):
    """Start `python -m MODULE ARGUMENTS...` with pipes to its standard input and output.

    Ctrl-C does not reach the child. When this process ends, however it ends, the child's standard input closes.

    Returns
    -------
    subprocess.Popen
        The child.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


def kill(processes, timeout=10):
    """Kill processes and all their children, and wait until they have ended.

    Parameters
    ----------
    processes : iterable of psutil.Process
        Some may be gone already.
    timeout : float
        Seconds to wait for them. (A zombie has ended when it has no other thread: nobody may ever collect one that lost
        its parent in a container.)
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
        while not ended(process) and time.monotonic() < deadline:
            time.sleep(0.01)
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            process.wait(0)  # a child of ours is no zombie any more


def ended(process):
    """Whether a psutil.Process has ended: it is gone, or a zombie without another thread; see `kill`."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if not process.is_running():
            return True
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() == 1
    return True


def watch(folder):
    """Be the watcher of a `Family` with this folder."""
    members = []
    for line in sys.stdin:
        with contextlib.suppress(psutil.NoSuchProcess):
            members.append(psutil.Process(int(line)))
    kill(members)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.argv[1])
