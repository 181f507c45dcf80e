"""What only a browser proves of JupyterLab, as `make lab` starts it: one walk from its first page to its shut-down."""

import os
import re
import signal
import socket
import subprocess
from contextlib import suppress
from functools import partial

import nbformat
import psutil
import pytest
from browser import BROWSER, PATIENCE, command_of, copied, environment_of, page_in, without_make_and_display
from nbformat.v4 import new_code_cell, new_notebook
from waiting import wait_for as wait

pytestmark = [BROWSER, pytest.mark.browser]
FIRST_TOGETHER = {  # lesson: what stands in its first cell on ranks, servers, elastic ranks that prints something
    "00": "%%px",
    "09": "replicas differ by",
    "12": "connect(2)",
    "15": "coordinator.schedule(pull)",
    "22": "start_elastic(train",
}
CELLS = """jupyterapp.shell.currentWidget.content.widgets.map(cell => ({
    source: cell.model.sharedModel.getSource(),
    type: cell.model.type,
    count: cell.model.executionCount ?? null,
    outputs: cell.model.outputs ? cell.model.outputs.toJSON() : [],
}))"""
ADDRESS = r"http://127\.0\.0\.1:\d+/\S*token=\w+"
STATUS = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
wait_for = partial(wait, seconds=PATIENCE)
CONNECT = """
import os

from helpers.cluster import connect

ranks = connect(2)
print("processes", *ranks.run(os.getpid))
"""
TRAIN = """%%px
import time

import horovod.tensorflow as hvd

from helpers.cluster import report

print("rank", hvd.rank())
for step in range(6_000):
    report(step, 6_000, loss=1, pairs_per_s=1)
    time.sleep(0.1)
"""


# ---- JupyterLab, driven from outside


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


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """The folder of the notebooks that JupyterLab shows: a copy, in a path with a space."""
    folder = copied(tmp_path_factory.mktemp("a course"), "notebooks", "tools", "benchmarks", "figures", "docs")
    return folder / "notebooks"


@pytest.fixture(scope="module")
def address(notebooks):
    """Where `make lab` lets one in."""
    folder = notebooks.parent
    own = {"JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_DATA_DIR": str(folder / "data")}
    with socket.socket() as probe:  # two that start at the same moment would both print, and one get, the usual port
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = f"--no-browser --allow-root --LabApp.expose_app_in_browser=True --ServerApp.port={port}"
    command = ["make", "--old-file=setup", "lab", f"LAB={flags}"]
    settings = {"cwd": folder, "env": without_make_and_display() | own, "start_new_session": True}
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, **settings)
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


@pytest.fixture(scope="module")
def page(address):
    """JupyterLab in a browser."""
    with page_in(1300) as page:
        page.goto(address)
        page.wait_for_selector(".jp-NotebookPanel")
        yield page


def processes_of(notebooks):
    """JupyterLab and all that it started, also what left its family: they inherit the environment."""
    config = str(notebooks.parent / "config")
    return {p for p in psutil.process_iter() if environment_of(p).get("JUPYTER_CONFIG_DIR") == config}


def test_a_good_start(page, notebooks):
    """00 is open, beside it the contents with the lessons in order; the outline is in the side bar, no pop-up."""
    assert page.evaluate("jupyterapp.shell.currentWidget.context.path") == "notebooks/00_start_here.ipynb"
    contents, lesson = page.locator(".jp-MarkdownViewer"), page.locator(".jp-NotebookPanel:visible")
    contents.get_by_text("The core path").wait_for()
    left, right = contents.bounding_box(), lesson.bounding_box()
    assert left["x"] + left["width"] <= right["x"] and left["width"] < right["width"]
    assert page.locator(".jp-SideBar [data-id='table-of-contents']").count() == 1
    page.wait_for_timeout(2_000)
    assert page.locator(".Toastify__toast").count() == 0
    names = "links => links.map(link => new URL(link.href).pathname.split('/').pop())"
    links = contents.locator("td a").evaluate_all(names)
    assert links == sorted(path.name for path in notebooks.glob("*.ipynb"))


def test_drawings_are_shown(page):
    """They lie beside the folder of the lessons: JupyterLab serves only what is below its root."""
    page.locator(".jp-MarkdownOutput img").first.wait_for()
    images = "[...document.querySelectorAll('.jp-MarkdownOutput img')]"
    wait_for(lambda: page.evaluate(f"{images}.every(image => image.complete)"))
    assert page.evaluate(f"{images}.filter(image => !image.naturalWidth).map(image => image.src)") == []


@pytest.mark.parametrize(("lesson", "text"), FIRST_TOGETHER.items())
def test_a_lesson_runs_from_its_first_cell_to_its_first_one_on_ranks_or_servers(page, notebooks, lesson, text):
    """And with its kernel everything ends that it has started."""
    (path,) = notebooks.glob(f"{lesson}_*.ipynb")
    before = processes_of(notebooks)
    open_notebook(page, f"notebooks/{path.name}")
    do(page, "jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    last = index_of(page, text)
    for index in range(last + 1):
        run_cell(page, index)
    ran = [cell for cell in page.evaluate(CELLS)[: last + 1] if cell["type"] == "code"]
    assert [output for cell in ran for output in cell["outputs"] if output["output_type"] == "error"] == []
    assert all(cell["count"] for cell in ran) and ran[-1]["outputs"]
    assert len(processes_of(notebooks) - before) >= 2, "what it trains on"
    do(page, "jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    wait_for(lambda: processes_of(notebooks) <= before)
    do(page, "jupyterapp.commands.execute('docmanager:save')")
    do(page, "jupyterapp.shell.currentWidget.close()")


def start_ranks(page):
    """Run the cell that connects; returns the processes of the ranks."""
    run_cell(page, 0)
    said = wait_for(lambda: re.search(r"processes (\d+) (\d+)", printed(code_cells(page)[0])))
    wait_for(lambda: is_idle(page))
    return [psutil.Process(int(pid)) for pid in said.groups()]


def are_gone(processes):
    return psutil.wait_procs(processes, timeout=PATIENCE)[1] == []


def test_live_line_interrupt_restart_and_shut_down(page, address, notebooks):
    cells = [new_code_cell(text) for text in (CONNECT, TRAIN)]
    kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), notebooks / "walk.ipynb")
    open_notebook(page, "notebooks/walk.ipynb")
    ranks = start_ranks(page)

    # the line of a training changes; an interrupt closes the ranks and says so
    lines = set()
    run_cell(page, 1, wait=False)

    def has_moved():
        shown = [str(output.get("data")) for output in code_cells(page)[1]["outputs"]]
        lines.update(line for line in shown if "rank 0: loss" in line)
        return len(lines) > 2

    wait_for(has_moved)
    menu(page, "Kernel", "Interrupt Kernel")
    wait_for(lambda: is_idle(page))
    said = printed(code_cells(page)[1])
    assert "interrupted: these ranks are closed, connect() gives new ones" in said
    assert re.findall(r"\[stdout:(\d)\]\s+rank (\d)", said) == [("0", "0"), ("1", "1")]
    assert are_gone(ranks)

    # new ones end when the kernel is restarted
    ranks = start_ranks(page)
    do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    assert are_gone(ranks)

    # and when JupyterLab is shut down
    wait_for(lambda: is_idle(page))
    do(page, "jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    ranks = start_ranks(page)
    family = processes_of(notebooks)
    menu(page, "File", "Shut Down")
    page.locator("dialog button.jp-mod-accept, .jp-Dialog button.jp-mod-accept").click()
    assert are_gone([*family, *ranks]), [command_of(process) for process in [*family, *ranks]]
