"""Execute notebooks from top to bottom, a line for each, and write them with their new outputs to build/run/.

    python tools/run_notebooks.py [--out build/run] [--measure] [notebook.ipynb ...]      (all of notebooks/ by default)
    python tools/run_notebooks.py --table                                             (runs nothing)

The notebooks themselves are left as they are. After a failing notebook the next one runs; the exit code is then 1.
What a kernel says outside of its cells, as when it ends badly, is in build/run/<notebook>.log. `make run` renders the
book of them.
--measure writes what a run took, and how much memory all its processes had at most, into the line "**It takes** ..." of
each notebook that passed, and into the table of README.md; --table only copies those lines to the table.
"""

import argparse
import asyncio
import json
import math
import os
import re
import signal
import sys
import threading
import time
import uuid
from contextlib import nullcontext
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbclient.util import ensure_async
from nbconvert.filters import strip_ansi

ROOT = Path(__file__).resolve().parent.parent
CELL_SECONDS = 300
MARK = "W2V_MEASURED_RUN"
TAKES = re.compile(r"\*\*It takes\*\* about ([\w ]+?) on 2 cores, and ([\d.]+ GB) of memory")
KERNEL = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]


class Interrupted(Exception):
    """Ctrl-C: the running cell was interrupted and the kernel is stopped."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of notebooks/")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "run", help="folder of the executed notebooks")
    parser.add_argument("--measure", action="store_true", help="write time and memory into headers and README.md")
    parser.add_argument("--table", action="store_true", help="copy time and memory from the headers to README.md")
    options = parser.parse_args()
    if options.table:
        fill_table(ROOT / "README.md")
        return
    notebooks = options.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    if missing := [str(path) for path in notebooks if not path.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [path.name for path in notebooks if not run(path, options.out, options.measure)]
    if options.measure:
        fill_table(ROOT / "README.md")
    sys.exit(f"failed: {', '.join(failed)}" if failed else f"no notebooks in {ROOT}" if not notebooks else 0)


def run(path, out, measure=False):
    """Execute one notebook and write what came out; returns whether every cell passed."""
    notebook = nbformat.read(path, as_version=4)
    started = time.monotonic()
    line = Line(path.name)
    try:
        with open(out / f"{path.stem}.log", "w") as log, Memory() if measure else nullcontext() as memory:
            asyncio.run(execute(notebook, path.parent, line, log))
        error = None
    except (CellExecutionError, DeadKernelError) as failure:
        error = failure
    except Interrupted:
        line.end("interrupted")
        sys.exit(130)
    nbformat.write(notebook, out / path.name)
    seconds = time.monotonic() - started
    line.end(f"{'FAILED' if error else 'ok'}  {seconds:.0f} s" + (f"  {memory.peak / 1e9:.1f} GB" if measure else ""))
    if error:
        print(f"  {line.cell}: {reason(error)}; see {out / path.name}", flush=True)
    elif measure:
        write_header(path, seconds, memory.peak)
    return error is None


def reason(error):
    """The last line of an error: "AssertionError: ..."."""
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {strip_ansi(error.evalue).strip().partition(chr(10))[0]}".rstrip(": ")
    return strip_ansi(str(error)).strip().splitlines()[-1]


class Memory:
    """The most memory (bytes, shared pages counted once) that all processes of a `with` block had together."""

    peak = 0

    def __enter__(self):
        os.environ[MARK] = uuid.uuid4().hex  # every process that a notebook starts inherits it
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        del os.environ[MARK]

    def watch(self):
        while not self.over.wait(0.5):
            self.peak = max(self.peak, sum(map(self.memory_of, psutil.process_iter())))

    def memory_of(self, process):
        try:
            if process.pid == os.getpid() or process.environ().get(MARK) != os.environ.get(MARK):
                return 0
            found = process.memory_full_info()
        except (psutil.Error, OSError):  # it has ended, or is somebody else's
            return 0
        return getattr(found, "pss", found.uss)


def write_header(path, seconds, memory):
    """Time, rounded up to 5 s, and memory into the line "**It takes** ..." of a notebook's first cell."""
    text = path.read_text(encoding="utf-8")
    minutes, rest = divmod(5 * math.ceil(seconds / 5), 60)
    time = " ".join(f"{n} {unit}" for n, unit in ((minutes, "min"), (rest, "s")) if n)
    gigabytes = f"{math.ceil(memory / 1e8) / 10:.1f} GB"
    line = f"**It takes** about {time} on 2 cores, and {gigabytes} of memory"
    path.write_text(TAKES.sub(line, text, count=1), encoding="utf-8")


def takes(path):
    """("1 min 20 s", "2.0 GB") of a notebook's first cell, or None."""
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    found = TAKES.search("".join(first["source"]))
    return found and found.groups()


def fill_table(readme):
    """The last two columns, time and memory, of the rows of README.md that link a notebook."""
    lines = readme.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        link = re.match(r"\| \[[^]]*\]\((notebooks/[^)]+\.ipynb)\) \|", line)
        if link and (found := takes(readme.parent / link[1])):
            lines[number] = "| " + " | ".join([*(cell.strip() for cell in line.split("|")[1:3]), *found]) + " |"
    readme.write_text("\n".join(lines) + "\n", encoding="utf-8")


async def execute(notebook, folder, line, log):
    """Run every cell in a kernel of this Python, in folder. Raises Interrupted after Ctrl-C or SIGTERM.

    An interrupt goes to the running cell first, so that the kernel ends normally and stops the engines it started.
    """
    loop = asyncio.get_running_loop()
    interrupts = []

    def interrupt():
        interrupts.append(time.monotonic())
        km = client.km
        asyncio.ensure_future(ensure_async(km.shutdown_kernel(now=True) if interrupts[1:] else km.interrupt_kernel()))

    def take_signals(notebook):
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, interrupt)

    def before_cell(cell, cell_index):
        if interrupts:
            raise Interrupted
        line.cell = f"cell {cell_index + 1} ({cell.source.strip().partition(chr(10))[0][:50]})"
        line.show(f"cell {cell_index + 1} of {len(notebook.cells)}")

    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        interrupt_on_timeout=True,
        error_on_timeout={"ename": "TimeoutError", "evalue": f"no end after {CELL_SECONDS} s", "traceback": []},
        resources={"metadata": {"path": str(folder)}},
        on_notebook_start=take_signals,
        on_cell_start=before_cell,
    )
    # whatever kernels the reader has installed: the Python that runs this
    client.create_kernel_manager().kernel_spec.argv = KERNEL
    try:
        await client.async_execute(stderr=log)
    except (CellExecutionError, DeadKernelError):
        if interrupts:
            raise Interrupted from None
        raise


class Line:
    """One line of the terminal: a name, then what is going on, rewritten in place, then the outcome."""

    cell = "before the first cell"

    def __init__(self, name):
        self.head, self.live = f"{name:34}", sys.stdout.isatty()
        print(self.head, end="", flush=True)

    def show(self, text):
        if self.live:
            print(f"\r{self.head}{text:20}", end="", flush=True)

    def end(self, text):
        print(f"\r{self.head}{text:20}" if self.live else text, flush=True)


if __name__ == "__main__":
    main()
