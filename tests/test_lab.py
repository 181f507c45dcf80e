"""JupyterLab as `make lab` starts it, in a browser: who gets in, 00 and 05 run, left, found, interrupted, shut down."""

import re
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from browser import (
    BROWSER,
    CELLS,
    OUTPUTS,
    RUN_SECONDS,
    code_cells,
    command_of,
    do,
    engines,
    errors,
    index_of,
    is_idle,
    kernel,
    menu,
    open_notebook,
    printed,
    run_all,
    run_cell,
    start_ranks,
)  # fmt: skip
from clusters import Cluster
from waiting import wait_for

ROOT = Path(__file__).resolve().parent.parent
pytestmark = BROWSER


def status_of(address):
    try:
        return urllib.request.urlopen(address, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code


def test_only_this_machine_with_the_token_gets_in(address):
    root, _, token = address.partition("/lab")[0], *address.partition("token=")[1:]
    assert status_of(f"{root}/api/kernels?token={token}") == 200
    assert status_of(f"{root}/api/kernels?token=wrong") == status_of(f"{root}/api/kernels") == 403
    port = int(root.rpartition(":")[2])
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.laddr.port == port and c.status == "LISTEN"}
    assert listening == {"127.0.0.1"}


def test_a_good_start(page):
    """00 is open, the file browser shows the notebooks in order, contents are in the side bar, no pop-up."""
    assert page.evaluate("jupyterapp.shell.currentWidget.context.path") == "00_start_here.ipynb"
    names = page.locator(".jp-DirListing-itemText").all_inner_texts()
    assert names == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert page.locator(".jp-SideBar [data-id='table-of-contents']").count() == 1
    page.wait_for_timeout(2_000)
    assert page.locator(".Toastify__toast").count() == 0


@pytest.fixture
def ipcluster(page):
    """A running cluster of 4; the kernel that was attached to it is started anew afterwards."""
    with Cluster(4) as cluster:
        yield cluster
        do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")


def test_00_attaches_to_a_running_ipcluster_and_runs_with_its_outputs_in_the_order_of_the_ranks(page, ipcluster):
    open_notebook(page, "00_start_here.ipynb")
    run_all(page)
    wait_for(lambda: is_idle(page), RUN_SECONDS, every=1)
    cells = code_cells(page)
    assert errors(cells) == [] and len(cells) > 10
    assert any("engines of the running ipcluster" in printed(cell) for cell in cells)
    labels = [re.findall(r"\[(?:stdout|output):(\d+)\]", printed(cell)) for cell in cells]
    assert ["0", "1"] in labels
    assert all(found == sorted(found) for found in labels)


def test_a_closed_tab_leaves_a_kernel_that_is_found_again_and_a_restart_leaves_no_engine(page):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    before = kernel(page)
    start_ranks(page)
    started = engines(before)
    do(page, "jupyterapp.commands.execute('docmanager:save')")
    do(page, "jupyterapp.shell.currentWidget.close()")
    open_notebook(page, "05_horovod_word2vec.ipynb")
    assert kernel(page).pid == before.pid
    do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    _, left = psutil.wait_procs(started, timeout=30)
    assert len(started) == 2 and left == []


def test_05_runs_to_its_end_with_a_live_line(page):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    run_all(page)
    training, lines = index_of(page, "losses = train("), set()

    def ended():
        outputs = page.evaluate(OUTPUTS.format(training))
        lines.update(str(output["data"]) for output in outputs if "rank 0: loss" in str(output.get("data")))
        return is_idle(page)

    wait_for(ended, RUN_SECONDS, every=1)
    cells = code_cells(page)
    assert errors(cells) == [] and all(cell["count"] for cell in cells) and len(lines) > 2


def test_it_obeys_an_interrupt_while_it_trains_and_connects_again(page):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    training = index_of(page, "sweep = [loss")
    start_ranks(page)
    needed = "%%px --local", "rank, size = hvd", "load_corpus(progress", "def train("
    for index, cell in enumerate(page.evaluate(CELLS)[:training]):
        if any(text in cell["source"] for text in needed):
            run_cell(page, index)
    do(page, "jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    run_cell(page, training, wait=False)
    wait_for(lambda: "rank 0: loss" in str(page.evaluate(OUTPUTS.format(training))), RUN_SECONDS)
    menu(page, "Kernel", "Interrupt Kernel")
    wait_for(lambda: is_idle(page))
    assert "interrupted: these ranks are closed, connect() gives new ones" in printed(page.evaluate(CELLS)[training])
    start_ranks(page)


def test_shut_down_leaves_no_process(page, address):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    if len(engines(kernel(page))) != 2:
        start_ranks(page)
    ranks = engines(kernel(page))
    assert len(ranks) == 2
    port = int(re.search(r":(\d+)/", address)[1])
    server = next(c.pid for c in psutil.net_connections("tcp") if c.laddr.port == port and c.status == "LISTEN")
    family = [psutil.Process(server), *psutil.Process(server).children(recursive=True), *ranks]
    menu(page, "File", "Shut Down")
    page.locator("dialog button.jp-mod-accept, .jp-Dialog button.jp-mod-accept").click()
    _, left = psutil.wait_procs(family, timeout=60)
    assert [command_of(process) for process in left] == []
