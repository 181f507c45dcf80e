"""Files that are whole or not there, and that one process at a time makes; and which bytes of a text are letters."""

import os
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # bytes that no text has
LETTERS = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalpha() else 32 for code in range(256))


def cache_folder(wanted=None):
    """Where what is built once is kept: the wanted folder, else $W2V_CACHE, else the user's cache directory."""
    return Path(wanted or os.environ.get("W2V_CACHE") or platformdirs.user_cache_dir("distributed-word2vec", False))


@contextmanager
def written_whole(path, mode="w"):
    """An open file that takes its place at `path` only when the block ends well.

    mode: "w", text in UTF-8 with "\\n" at the end of a line, or "wb". Until then, and when the block raises, whoever
    reads `path` finds what was there before. Two processes that write the same path do not mix: the last to finish
    wins.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, mode, **{} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}) as file:
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
        return lock.acquire(timeout=1.0)
    except Timeout:
        print(f"Waiting for another process to {task}; it holds {lock.lock_file}", flush=True)
        return lock.acquire()
