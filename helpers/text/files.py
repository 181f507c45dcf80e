"""Files that are whole or not there, and that one process at a time makes."""

import os
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

PATIENCE = 1.0  # seconds of waiting for another process before a line says so


@contextmanager
def written_whole(path):
    """An open text file (UTF-8, "\\n" ends a line) that takes its place at `path` only when the block ends well.

    Until then, and when the block raises, whoever reads `path` finds what was there before. Two processes that write
    the same path do not mix: the last to finish wins.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def only_process(path, task):
    """A context: no other process of this host is inside with the same `path`, whose folder is made. To wait costs a
    line.

    task: what the process inside does, for that line: "download text8".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    try:
        return lock.acquire(timeout=PATIENCE)
    except Timeout:
        print(f"Waiting for another process to {task}; it holds {lock.lock_file}", flush=True)
        return lock.acquire()
