"""At which line each rank stands: every engine writes its stack into a file when it gets a signal.

The signal's handler (Python's faulthandler) is C code. So it answers also where no line of Python can run any more,
inside a collective that never ends.
"""

import faulthandler
import linecache
import re
import signal
from pathlib import Path

SIGNAL = getattr(signal, "SIGUSR1", None)  # Windows has none
FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.MULTILINE)
OURS = re.compile(r"ipykernel_\d+|<ipython-input")  # a cell, or a function that a cell has defined
LIBRARY = re.compile(
    r"site-packages|dist-packages|[/\\]lib[/\\]python\d|^<|__autograph_generated|[/\\]helpers[/\\]cluster[/\\]"
)
_files = []  # open as long as this process lives: faulthandler writes into them


def answer_signal(file):
    """Write the stack of this process into `file` each time it gets SIGNAL; where there is no such signal, never."""
    if SIGNAL is not None and Path(file).parent.is_dir():
        _files.append(open(file, "w"))  # noqa: SIM115
        faulthandler.register(SIGNAL, file=_files[-1], all_threads=True)


def last_stack(text):
    """The frames of the main thread in the last dump, innermost first: list of (file, line, function)."""
    threads = re.split(r"^(?:Thread|Current thread) .*$", text, flags=re.MULTILINE)  # the main thread is the last one
    return [(m["file"], int(m["line"]), m["function"]) for m in FRAME.finditer(threads[-1])]


def standing(frames, cell=""):
    """Say in one line where a stack stands.

    Parameters
    ----------
    frames : list of (str, int, str)
        File, line and function, innermost first.
    cell : str
        The last cell that `%%px` sent: engines keep no source of it.

    Returns
    -------
    str
        Such as "line 4 of step: hvd.allreduce(x)"; the innermost line that is nobody's library.
    """
    own = [frame for frame in frames if OURS.search(frame[0])]
    own = own or [frame for frame in frames if not LIBRARY.search(frame[0])]
    if not own:
        return "idle"
    file, line, function = own[0]
    text = linecache.getline(file, line)
    if not text and OURS.search(file):
        text = "\n".join(cell.splitlines()[line - 1 : line])
    place = "the cell" if function == "<module>" else function
    if not OURS.search(file):
        place += f" in {Path(file).name}"
    return f"line {line} of {place}: {text.strip()}".removesuffix(": ")
