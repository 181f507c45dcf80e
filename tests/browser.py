"""Debian's Chromium, driven by Playwright, for the tests of the book and of JupyterLab."""

import os
import re
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from waiting import wait_for as wait

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = shutil.which("chromium")
BROWSER = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="there is no chromium (Debian: apt install chromium) or no playwright (it comes with make setup) here",
)
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
CELLS = """jupyterapp.shell.currentWidget.content.widgets.map(cell => ({
    source: cell.model.sharedModel.getSource(),
    type: cell.model.type,
    count: cell.model.executionCount ?? null,
    outputs: cell.model.outputs ? cell.model.outputs.toJSON() : [],
}))"""
PATIENCE = 300  # seconds that anything may take on a busy machine
LAB_FOLDER = "with a space"
ADDRESS = r"http://127\.0\.0\.1:\d+/\S*token=\w+"
wait_for = partial(wait, seconds=PATIENCE)
STATUS = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"


@contextmanager
def page_in(width, height=900):
    """A page of this width; page.said: what it complained of, errors of the console and resources that are missing."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(1000 * PATIENCE)
        page.said = []
        page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
        page.on("requestfailed", lambda request: page.said.append(request.url))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        yield page
        browser.close()


def pages(book):
    """Every page of a book but those of the source."""
    return sorted(path for path in book.rglob("*.html") if not path.relative_to(book).parts[0].startswith("_"))


def copied(parent, *names):
    """A folder below `parent`, with the Makefile, these files and folders, and a link to .venv."""
    folder = parent / LAB_FOLDER
    folder.mkdir()
    for name in ("Makefile", *names):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def without_make_and_display():
    """For a test that calls `make`: not as a part of `make test`, and as on a machine without a screen."""
    hidden = ("MAKE", "DISPLAY", "WAYLAND_DISPLAY")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


@contextmanager
def lab(parent):
    """The address at which `make lab` lets one in. It runs in a copy of the notebooks, in a path with a space."""
    folder = copied(parent, "notebooks", "tools", "benchmarks", "figures")
    own = {"JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_DATA_DIR": str(folder / "data")}
    environment = without_make_and_display() | own
    with socket.socket() as probe:  # two that start at the same moment would both print, and one get, the usual port
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = f"--no-browser --allow-root --LabApp.expose_app_in_browser=True --ServerApp.port={port}"
    with open(folder / "lab.log", "w") as log:
        command = ["make", "--old-file=setup", "lab", f"LAB={flags}"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    said = (folder / "lab.log").read_text
    try:
        wait_for(lambda: re.search(ADDRESS, said()) or server.poll() is not None)
        found = re.search(ADDRESS, said())
        assert found, said()
        yield found[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def do(page, what):
    """Let JupyterLab do something, and wait for it."""
    page.evaluate(f"async () => {{ await ({what}) }}")


def open_notebook(page, name):
    do(page, f"jupyterapp.commands.execute('docmanager:open', {{path: '{name}'}})")
    wait_for(lambda: page.evaluate("jupyterapp.shell.currentWidget?.context?.path") == name)
    wait_for(lambda: page.evaluate(STATUS) == "idle")


def code_cells(page):
    return [cell for cell in page.evaluate(CELLS) if cell["type"] == "code"]


def printed(cell):
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def is_idle(page):
    return page.evaluate(STATUS) == "idle" and page.locator(".jp-InputPrompt", has_text="[*]").count() == 0


def run_cell(page, index, wait=True):
    """Run one cell of the open notebook, as Shift-Enter does; wait: until it has ended."""
    do(page, f"jupyterapp.shell.currentWidget.content.activeCellIndex = {index}")
    run = "jupyterapp.commands.execute('notebook:run-cell')"
    do(page, run if wait else f"({run}, null)")


def index_of(page, text):
    """The number of the first code cell with this text."""
    return next(i for i, c in enumerate(page.evaluate(CELLS)) if c["type"] == "code" and text in c["source"])


def menu(page, name, entry):
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{name}$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{entry}")).first.click()


def errors(cells):
    return [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"]


def kernel(page):
    """The process of the kernel of the open notebook."""
    kernel_id = page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
    return next(p for p in psutil.process_iter() if any(kernel_id in word for word in command_of(p)))


def command_of(process):
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def environment_of(process):
    try:
        return process.environ()
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return {}
