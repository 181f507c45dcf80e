"""A process that is killed while it works; `python -m lesson_parts.killed` calls what its standard input holds."""

import functools
import os
import sys
import threading
import time

import cloudpickle

from helpers.cluster.processes import start_child


def kill_after(seconds, fn, *args, ready, timeout=60):
    """Call `fn(*args)` in a process of its own, and kill that.

    Parameters
    ----------
    seconds : float
        How long the process may go on after `ready()` was true for the first time.
    fn : callable
        Should not return before. It travels with what it refers to.
    ready : callable
        Takes nothing; asked again and again, here, not in the process.
    timeout : float
        Seconds until `ready()` must be true.

    Raises
    ------
    RuntimeError
        If the process ends by itself before, or `ready()` stays false.
    """
    with start_child("lesson_parts.killed") as child:
        try:
            child.stdin.buffer.write(cloudpickle.dumps(functools.partial(fn, *args)))
            child.stdin.buffer.flush()
            deadline = time.monotonic() + timeout
            while not ready():
                if child.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"not ready: the process has ended by itself, or took more than {timeout} s")
                time.sleep(0.0002)
            time.sleep(seconds)
        finally:
            child.kill()


def end_with_parent():
    """Wait until the standard input closes, which it does when the process that writes to it ends."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    work = cloudpickle.load(sys.stdin.buffer)
    threading.Thread(target=end_with_parent, daemon=True).start()
    work()
