"""Files that are whole or not there, made by one process at a time; and which bytes are letters."""

import os
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # bytes that no text has
PATIENCE = 1.0  # seconds; to wait longer for another process is worth a line


def _lower_letter(code):
    letter = code < 128 and chr(code).isalpha()
    return ord(chr(code).lower()) if letter else ord(" ")


LETTERS = bytes(map(_lower_letter, range(256)))  # for bytes.translate


def cache_folder(wanted=None):
    """Return where what is built once is kept.

    Parameters
    ----------
    wanted : str or Path, optional
        In place of $W2V_CACHE or the user's cache directory.

    Returns
    -------
    Path
    """
    usual = platformdirs.user_cache_dir("distributed-word2vec", appauthor=False)
    return Path(wanted or os.environ.get("W2V_CACHE") or usual)


@contextmanager
def written_whole(path, mode="w"):
    r"""Open a file that takes its place at `path` only when the block ends well.

    Until then, and when the block raises, whoever reads `path` finds what was there before. Two
    processes that write the same path do not mix: the last to finish wins.

    Parameters
    ----------
    path : str or Path
    mode : str
        "w", text in UTF-8 with "\n" at the end of a line, or "wb".

    Yields
    ------
    file
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    look = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(part, mode, **look) as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def only_process(path, task):
    """Lock a path of this host, whose folder is made; who has to wait prints a line.

    Parameters
    ----------
    path : Path
    task : str
        What the process inside does, for that line: "download text8".

    Returns
    -------
    context manager
        No other process is inside with the same `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    try:
        return lock.acquire(timeout=PATIENCE)
    except Timeout:
        print(f"Waiting for another process to {task}; it holds {lock.lock_file}", flush=True)
        return lock.acquire()
