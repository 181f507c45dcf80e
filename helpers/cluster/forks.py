"""A child process that has imported TensorFlow forks others, each in a fraction of a second: engines, servers and
elastic processes.

It stays for those to come, and ends with all of them when this process does, also by SIGKILL. Not multiprocessing's
forkserver, which starts no faster, but runs the caller's script again in each process, lets a notebook's interrupt
reach them, and prints what TensorFlow says when it is imported.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil

from helpers.cluster.reaper import kill, start_child, tail

READ_AT_IMPORT = "TF_", "XLA_", "KERAS_", "PYTHONPATH"  # names of variables, as they begin
_forkers = {}  # by the values of these


def forker(env=None):
    """The Forker of this process for its environment and `env`, started when it is first needed."""
    env = {**os.environ, **(env or {})}
    key = frozenset((name, env[name]) for name in env if name.startswith(READ_AT_IMPORT))
    if key not in _forkers or _forkers[key].process.poll() is not None:
        _forkers[key] = Forker(env)
    return _forkers[key]


class Forker:
    """The child process that forks. directory: its own, and the temporary directory of what it forks."""

    def __init__(self, env):
        self.directory = Path(tempfile.mkdtemp(prefix="forks-"))
        self._log, self._one_at_a_time = self.directory / "start.log", threading.Lock()
        with open(self._log, "w") as log:
            own = {**env, "OPENBLAS_NUM_THREADS": "1"}  # threads of its own would not be there after a fork
            self.process = start_child("forks", self.directory, env=own, stderr=log)
        atexit.register(self.stop)

    def fork(self, function, *arguments, env, log, timeout):
        """Call function(*arguments) in a new process: its psutil.Process.

        function: one that can be imported. arguments: what JSON can hold. env: added to our own environment.
        log: path of a file that is given its output. timeout: seconds to import TensorFlow.
        TimeoutError if that is not enough or our process has ended, psutil.NoSuchProcess if the new one is no more.
        After a TimeoutError, and after Ctrl-C while this waits, all that it has forked has ended.
        """
        env = {**os.environ, "TMPDIR": str(self.directory), **env}  # what TensorFlow leaves there goes with us
        asked = [function.__module__, function.__name__, arguments, env, os.getcwd(), str(log)]
        with self._one_at_a_time, contextlib.ExitStack() as undo:
            undo.callback(self.stop)  # also when interrupted: the next answer would be that of this call
            try:
                print(json.dumps(asked), file=self.process.stdin, flush=True)
                answered = select.select([self.process.stdout], [], [], timeout)[0]
                pid = int(self.process.stdout.readline() if answered else "")
            except (OSError, ValueError):
                what = f"has not imported TensorFlow within {timeout:.0f} s, or ended"
                raise TimeoutError(f"the process that forks them {what}. It said:\n{tail(self._log)}") from None
            undo.pop_all()
        forked = psutil.Process(pid)
        if forked.ppid() != self.process.pid:  # the id belongs to somebody else already
            raise psutil.NoSuchProcess(pid)
        return forked

    def exit_code(self, pid):
        """Of a process that has ended; -9 if SIGKILL ended it. None if it is not known after 2 s."""
        noted, deadline = self.directory / str(pid), time.monotonic() + 2
        while not (code := noted.read_text() if noted.exists() else "") and time.monotonic() < deadline:
            time.sleep(0.01)
        return int(code) if code else None

    def stop(self):
        """End it and all that it has forked."""
        for key in [key for key, other in _forkers.items() if other is self]:
            del _forkers[key]
        shutil.rmtree(self.directory, ignore_errors=True)  # first: we may be killed while we wait for the others
        kill([psutil.Process(self.process.pid)] if self.process.poll() is None else [])
        self.process.communicate()
        shutil.rmtree(self.directory, ignore_errors=True)


def main(directory):
    """For each line of stdin fork a process and print its id. Note the exit code of each that ends."""
    importlib.import_module("tensorflow")
    gc.freeze()  # what is imported is never garbage: the processes do not look at it, and so share it
    alive, ours = os.pipe()
    signal.signal(signal.SIGCHLD, functools.partial(_note_endings, directory))
    for line in sys.stdin:
        module, *asked = json.loads(line)
        module = importlib.import_module(module)
        if pid := os.fork():
            with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                print(pid, flush=True)
        else:
            os.close(ours)
            _be(module, *asked, alive)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    shutil.rmtree(directory, ignore_errors=True)


def _note_endings(directory, *signal_and_frame):
    with contextlib.suppress(OSError):  # there is no child left; or the directory is gone
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            Path(directory, str(ended[0])).write_text(str(os.waitstatus_to_exitcode(ended[1])))


def _be(module, function, arguments, env, cwd, log, alive):
    """Be the new process: call the function, and end, with all children, when the one that forked us does."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(descriptor, stream)
    threading.Thread(target=lambda: (os.read(alive, 1), kill([psutil.Process()])), daemon=True).start()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    np.random.seed()  # or all would draw the same
    getattr(module, function)(*arguments)
    sys.exit()


if __name__ == "__main__":
    main(sys.argv[1])
