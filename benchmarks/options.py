"""What the command lines of all benchmarks share."""

import argparse
import json
from pathlib import Path

from helpers.text.files import written_whole

RESULTS = Path(__file__).parent / "results"


def at_least(least):
    """A type for argparse: an int that is not below `least`."""

    def parse(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}, but it must be at least {least}")
        return int(text)

    return parse


positive = at_least(1)


def check_writable(*paths):
    """OSError, before the work and not after it, for a path that cannot be written. None is not a path."""
    for path in map(Path, filter(None, paths)):
        part = Path(f"{path}.part")
        try:
            part.touch()
            part.unlink()
        except OSError as error:
            raise OSError(f"{path} cannot be written: {error.strerror}") from None
        if path.is_dir():
            raise OSError(f"{path} cannot be written: it is a directory")


def label_of(corpus):
    """A corpus as results name it: docs, text8 or planted, and "file" for a path, since no path gets into them."""
    return corpus if corpus in ("docs", "text8", "planted") else "file"


def as_text(value):
    """A number in a table of results: whole from 100 on, else with three digits; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"


def write_json(path, results):
    """Write a file of results; whoever reads it meanwhile, or stops the program, finds the old one or the new one."""
    with written_whole(path) as file:
        file.write(json.dumps(results, indent=1) + "\n")
