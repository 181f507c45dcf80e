"""Execute notebooks from top to bottom, a line for each, and write the rendered pages to build/.

    python tools/run_notebooks.py [--out build] [notebook.ipynb ...]        (all of notebooks/ by default)

The notebooks themselves are left as they are. After a failing notebook the next one runs; the exit code is then 1.
What a kernel says outside of its cells, as when it ends badly, is in build/<notebook>.log.
"""

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbclient.util import ensure_async
from nbconvert import HTMLExporter
from nbconvert.filters import strip_ansi

ROOT = Path(__file__).resolve().parent.parent
CELL_SECONDS = 300
KERNEL = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]


class Interrupted(Exception):
    """Ctrl-C: the running cell was interrupted and the kernel is stopped."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of notebooks/")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="folder of the HTML pages")
    options = parser.parse_args()
    notebooks = options.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    if missing := [str(path) for path in notebooks if not path.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [path.name for path in notebooks if not run(path, options.out)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else f"no notebooks in {ROOT}" if not notebooks else 0)


def run(path, out):
    """Execute one notebook and render it; returns whether every cell passed."""
    notebook = nbformat.read(path, as_version=4)
    started = time.monotonic()
    line = Line(path.name)
    try:
        with open(out / f"{path.stem}.log", "w") as log:
            asyncio.run(execute(notebook, path.parent, line, log))
        error = None
    except (CellExecutionError, DeadKernelError) as failure:
        error = failure
    except Interrupted:
        line.end("interrupted")
        sys.exit(130)
    page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    (out / f"{path.stem}.html").write_text(page, encoding="utf-8")
    line.end(f"{'FAILED' if error else 'ok'}  {time.monotonic() - started:.0f} s")
    if error:
        print(strip_ansi(str(error)).rstrip(), flush=True)
    return error is None


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
