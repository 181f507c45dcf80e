"""Execute notebooks from top to bottom, a line for each, and write them with their new outputs to build/run/.

    python tools/run_notebooks.py [--out build/run] [--measure] [notebook.ipynb ...]      (all of notebooks/ by default)
    python tools/run_notebooks.py --table                                             (runs nothing)

The notebooks themselves are left as they are. After a failing notebook the next one runs; the exit code is then 1.
What a kernel says outside of its cells, as when it ends badly, is in build/run/<notebook>.log. `make run` renders the
book of them. nbclient does the work; this adds the line, Ctrl-C, and the meter of memory.

--measure writes what a run took, and how much memory all its processes had at most, into the line "**It takes the
machine** ..." of each notebook that passed, and into the table of docs/lessons.md; --table only copies those lines to
the table.
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
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.filters import strip_ansi
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
CELL_SECONDS = 600
MARK = "W2V_MEASURED_RUN"
YOU = re.compile(r"\*\*It takes you\*\* about (\d+) minutes")
MACHINE = re.compile(r"\*\*It takes the machine\*\* about ([\w ]+?) on 2 cores, and ([\d.]+ GB) of memory")
FAILURES = CellExecutionError, CellTimeoutError, DeadKernelError


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of notebooks/")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "run", help="folder of the executed notebooks")
    parser.add_argument("--measure", action="store_true", help="write time and memory into headers and docs/lessons.md")
    parser.add_argument("--table", action="store_true", help="copy time and memory from the headers to docs/lessons.md")
    options = parser.parse_args()
    if options.table:
        fill_table(ROOT / "docs" / "lessons.md")
        return
    notebooks = options.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    missing = [str(path) for path in notebooks if not path.is_file()]
    if missing:
        parser.error(f"no such file: {', '.join(missing)}")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of this environment, whatever else the reader has
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [path.name for path in notebooks if not run(path, options.out, options.measure)]
    if options.measure:
        fill_table(ROOT / "docs" / "lessons.md")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def run(path, out, measure=False):
    """Execute one notebook and write what came out; returns whether every cell passed."""
    notebook = nbformat.read(path, as_version=4)
    error = None
    started = time.monotonic()
    with open(out / f"{path.stem}.log", "w") as log, Memory() if measure else nullcontext() as memory:
        try:
            execute(notebook, path, log)
        except FAILURES as failure:
            error = failure
        except KeyboardInterrupt:
            print(f"{path.name:34}interrupted", flush=True)
            sys.exit(130)
        finally:
            nbformat.write(notebook, out / path.name)
    seconds = time.monotonic() - started
    outcome = f"FAILED  {seconds:.0f} s" if error else f"ok  {seconds:.0f} s"
    size = f"  {memory.peak / 1e9:.1f} GB" if measure else ""
    print(f"{path.name:34}{outcome}{size}", flush=True)
    if error:
        print(f"  {reason(error)}; see {out / path.name}", flush=True)
    elif measure:
        write_header(path, seconds, memory.peak)
    return error is None


def execute(notebook, path, log):
    """Run every cell in a kernel of its own, in the folder of path; an error has a note that says which cell.

    Raises KeyboardInterrupt after Ctrl-C or SIGTERM. An interrupt goes to the running cell first, so that the kernel
    ends normally and stops the engines it started.
    """
    interrupted = threading.Event()
    bar = tqdm(desc=path.name, total=len(notebook.cells), unit="cell", leave=False, disable=None)

    def take_signals(notebook):
        def interrupt():
            interrupted.set()
            asyncio.ensure_future(client.km.interrupt_kernel())

        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, interrupt)

    def before_cell(cell, cell_index):
        bar.update()
        if interrupted.is_set():
            raise KeyboardInterrupt

    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(path.parent)}},
        on_notebook_start=take_signals,
        on_cell_start=before_cell,
    )
    with bar:
        try:
            client.execute(stderr=log)
        except FAILURES as error:
            if interrupted.is_set():
                raise KeyboardInterrupt from None
            error.add_note(f"In [{client.code_cells_executed}]")
            raise


def reason(error):
    """The cell of an error and the first line of what it says: "In [2]: AssertionError: ..."."""
    said = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error)
    return f"{error.__notes__[0]}: {strip_ansi(said).strip().splitlines()[0]}"


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
        while not self.over.wait(2):  # to look takes as long as a small step, and holds up who is looked at
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
    """Time, rounded up to 5 s, and memory into the line "**It takes the machine** ..." of a lesson's first cell."""
    text = path.read_text(encoding="utf-8")
    minutes, rest = divmod(5 * math.ceil(seconds / 5), 60)
    time = " ".join(f"{n} {unit}" for n, unit in ((minutes, "min"), (rest, "s")) if n)
    gigabytes = f"{math.ceil(memory / 1e8) / 10:.1f} GB"
    line = f"**It takes the machine** about {time} on 2 cores, and {gigabytes} of memory"
    path.write_text(MACHINE.sub(line, text, count=1), encoding="utf-8")


def takes(path):
    """("50 min", "1 min 20 s", "2.0 GB") of a lesson's first cell, or None."""
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    you, machine = YOU.search(first), MACHINE.search(first)
    return you and machine and (f"{you[1]} min", *machine.groups())


def fill_table(page):
    """The last three columns, minutes of a person, time and memory, of the rows of the page that link a notebook."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        link = re.match(r"\| \[[^]]*\]\((\.\./notebooks/[^)]+\.ipynb)\) \|", line)
        found = link and takes(page.parent / link[1])
        if found:
            title_and_content = [cell.strip() for cell in line.split("|")[1:3]]
            lines[number] = "| " + " | ".join([*title_and_content, *found]) + " |"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
