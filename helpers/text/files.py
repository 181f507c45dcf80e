"""Files that are whole or not there."""

import os
from contextlib import contextmanager
from pathlib import Path


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
