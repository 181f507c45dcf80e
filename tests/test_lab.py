"""What only a browser proves of JupyterLab, as `make lab` starts it: one walk from its first page to its shut-down."""

import re
import time
import urllib.error
import urllib.request

import nbformat
import psutil
import pytest
from browser import (
    BROWSER,
    CELLS,
    LAB_FOLDER,
    PATIENCE,
    code_cells,
    command_of,
    do,
    environment_of,
    errors,
    index_of,
    is_idle,
    kernel,
    lab,
    menu,
    open_notebook,
    page_in,
    printed,
    run_cell,
    wait_for,
)
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [BROWSER, pytest.mark.browser]
FIRST_TOGETHER = {  # lesson: what stands in its first cell on ranks or servers that prints something
    "00": "%%px",
    "09": "replicas differ by",
    "12": "connect(2)",
    "15": "coordinator.schedule(pull)",
    "22": "start_elastic(train",
}
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


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """The folder of the notebooks that JupyterLab shows."""
    return tmp_path_factory.mktemp("a course") / LAB_FOLDER / "notebooks"


@pytest.fixture(scope="module")
def address(notebooks):
    """Where `make lab` lets one in."""
    with lab(notebooks.parent.parent) as address:
        yield address


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


def server_port(address):
    return int(re.search(r":(\d+)/", address)[1])


def listening(port):
    return [c for c in psutil.net_connections("tcp") if c.laddr.port == port and c.status == "LISTEN"]


def status_of(address):
    try:
        return urllib.request.urlopen(address, timeout=PATIENCE).status
    except urllib.error.HTTPError as error:
        return error.code


def test_only_this_machine_with_the_token_gets_in(address):
    root = address.partition("/lab")[0]
    token = address.partition("token=")[2]
    assert status_of(f"{root}/api/kernels?token={token}") == 200
    assert status_of(f"{root}/api/kernels?token=wrong") == status_of(f"{root}/api/kernels") == 403
    assert {c.laddr.ip for c in listening(server_port(address))} == {"127.0.0.1"}


def test_a_good_start(page, notebooks):
    """00 is open, the file browser shows the notebooks in order, contents are in the side bar, no pop-up."""
    assert page.evaluate("jupyterapp.shell.currentWidget.context.path") == "notebooks/00_start_here.ipynb"
    names = page.locator(".jp-DirListing-itemText").all_inner_texts()
    assert names == sorted(path.name for path in notebooks.glob("*.ipynb"))
    assert page.locator(".jp-SideBar [data-id='table-of-contents']").count() == 1
    page.wait_for_timeout(2_000)
    assert page.locator(".Toastify__toast").count() == 0


def test_drawings_are_shown(page):
    """They lie beside the folder of the lessons: JupyterLab serves only what is below its root."""
    page.locator(".jp-MarkdownOutput img").first.wait_for()
    images = "[...document.querySelectorAll('.jp-MarkdownOutput img')]"
    wait_for(lambda: page.evaluate(f"{images}.every(image => image.complete)"))
    assert page.evaluate(f"{images}.filter(image => !image.naturalWidth).map(image => image.src)") == []


@pytest.mark.parametrize(("lesson", "text"), FIRST_TOGETHER.items())
def test_a_lesson_runs_from_its_first_cell_to_its_first_one_on_ranks_or_servers(page, notebooks, lesson, text):
    """And with its kernel everything ends that it has started."""
    begin = time.perf_counter()
    (path,) = notebooks.glob(f"{lesson}_*.ipynb")
    before = processes_of(notebooks)
    open_notebook(page, f"notebooks/{path.name}")
    do(page, "jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    last = index_of(page, text)
    for index in range(last + 1):
        run_cell(page, index)
    ran = [cell for cell in page.evaluate(CELLS)[: last + 1] if cell["type"] == "code"]
    assert errors(ran) == [] and all(cell["count"] for cell in ran) and ran[-1]["outputs"]
    started = processes_of(notebooks) - before
    assert len(started) >= 2, "what it trains on"
    has_run = time.perf_counter()
    do(page, "jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    wait_for(lambda: processes_of(notebooks) <= before)
    print(f"{path.stem}: {has_run - begin:.0f} s for {len(ran)} code cells, {len(started)} processes,")
    print(f"and {time.perf_counter() - has_run:.0f} s until they had ended")
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


def test_live_line_interrupt_closed_tab_restart_and_shut_down(page, address, notebooks):
    cells = [new_code_cell(text) for text in (CONNECT, TRAIN)]
    kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), notebooks / "walk.ipynb")
    open_notebook(page, "notebooks/walk.ipynb")

    # a closed tab leaves the kernel, and it is found again
    ranks = start_ranks(page)
    before = kernel(page).pid
    do(page, "jupyterapp.commands.execute('docmanager:save')")
    do(page, "jupyterapp.shell.currentWidget.close()")
    open_notebook(page, "notebooks/walk.ipynb")
    assert kernel(page).pid == before and all(rank.is_running() for rank in ranks)

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
    server = psutil.Process(listening(server_port(address))[0].pid)
    family = [server, *server.children(recursive=True)]
    menu(page, "File", "Shut Down")
    page.locator("dialog button.jp-mod-accept, .jp-Dialog button.jp-mod-accept").click()
    assert are_gone([*family, *ranks]), [command_of(process) for process in [*family, *ranks]]
