"""Run once more, alone, what failed in the last `make test`.

Two tests or lessons run side by side there, on two cores: one that waits for a second, or compares two speeds, can fail
because of the other. A defect fails both times. What fails only beside a neighbour is said: it waits for being mended.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
AT_MOST = 3  # more is no accident


def failed(cache):
    """What to run again, from pytest's list: tests, and whole notebooks, since a cell needs those above it."""
    if not cache.is_file():
        return []
    again = set()
    for name in json.loads(cache.read_text(encoding="utf-8")):
        test = name.partition("@")[0]  # without the group that `-n 2` appends
        file = test.partition("::")[0]
        again.add(file if file.endswith(".ipynb") else test)
    return sorted(again)


def main():
    """Run them one after the other, each in a pytest of its own.

    Returns
    -------
    int or str
        0 if all of them pass, otherwise what `sys.exit` shall say.
    """
    again = failed(ROOT / ".pytest_cache/v/cache/lastfailed")
    if not again:
        return "no test that failed is on record, so nothing can be judged again"
    if len(again) > AT_MOST:
        return f"{len(again)} tests and lessons failed, too many to be their neighbours' fault: none is judged again"
    pytest = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider"]
    codes = {name: subprocess.run([*pytest, name], cwd=ROOT, check=False).returncode for name in again}
    for name, code in codes.items():
        print(f"{name}: {'failed again' if code else 'failed beside its neighbour, passed alone; it needs mending'}")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
