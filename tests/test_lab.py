"""JupyterLab as `make lab` starts it, driven in a browser: the notebooks run, are interrupted, restarted and left."""

import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import ipyparallel as ipp
import psutil
import pytest
from browser import (
    BROWSER,
    CELLS,
    STATUS,
    code_cells,
    do,
    index_of,
    is_idle,
    lab,
    open_notebook,
    page_in,
    printed,
    run_cell,
    wait_for,
)  # fmt: skip

ROOT = Path(__file__).resolve().parent.parent
pytestmark = BROWSER
RUN_SECONDS = 600  # on a busy machine


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where `make lab` lets one in, in a path with a space, beside another Lab."""
    with lab(tmp_path_factory.mktemp("a course")) as address:
        yield address


@pytest.fixture(scope="module")
def page(address):
    with page_in(1300) as page:
        page.set_default_timeout(60_000)
        page.goto(address)
        page.wait_for_selector(".jp-NotebookPanel")
        yield page


def menu(page, name, entry):
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{name}$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{entry}")).first.click()


def errors(cells):
    return [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"]


def run_all(page):
    do(page, "jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    menu(page, "Run", "Run All Cells")
    wait_for(lambda: page.evaluate(STATUS) == "busy")


def kernel(page):
    """The process of the kernel of the open notebook."""
    kernel_id = page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
    return next(p for p in psutil.process_iter() if any(kernel_id in word for word in command_of(p)))


def command_of(process):
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def engines(kernel):
    """The processes of the engines that this kernel has started."""
    return [p for p in psutil.process_iter() if cluster_of(p).startswith(f"ranks-{kernel.pid}-")]


def cluster_of(process):
    try:
        return process.environ().get("IPP_CLUSTER_ID", "")
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return ""


def start_ranks(page):
    """Run the open notebook down to its connect cell; returns its engines."""
    for index in range(index_of(page, "connect(2)") + 1):
        run_cell(page, index)
    return wait_for(lambda: is_idle(page) and engines(kernel(page)))


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


def test_00_runs_with_its_outputs_in_the_order_of_the_ranks(page):
    open_notebook(page, "00_start_here.ipynb")
    run_all(page)
    wait_for(lambda: is_idle(page), RUN_SECONDS)
    cells = code_cells(page)
    assert errors(cells) == [] and len(cells) > 10
    labels = [re.findall(r"\[(?:stdout|output):(\d+)\]", printed(cell)) for cell in cells]
    assert ["0", "1"] in labels
    assert all(found == sorted(found) for found in labels)


def test_a_closed_tab_leaves_a_kernel_that_is_found_again_and_a_restart_leaves_no_engine(page):
    open_notebook(page, "00_start_here.ipynb")
    before = kernel(page)
    started = start_ranks(page)
    do(page, "jupyterapp.commands.execute('docmanager:save')")
    do(page, "jupyterapp.shell.currentWidget.close()")
    open_notebook(page, "00_start_here.ipynb")
    assert kernel(page).pid == before.pid
    do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    _, left = psutil.wait_procs(started, timeout=30)
    assert left == []


@pytest.fixture
def ipcluster():
    """Four engines under the default profile of this test session."""
    program = [str(ROOT / ".venv" / "bin" / "ipcluster")]
    subprocess.run([*program, "start", "-n", "4", "--daemonize"], check=True, capture_output=True, timeout=60)
    client = ipp.Client(timeout=60)
    client.wait_for_engines(4, timeout=60)
    client.close()
    yield
    subprocess.run([*program, "stop"], check=True, capture_output=True, timeout=60)


def test_the_same_notebook_attaches_to_a_running_ipcluster(page, ipcluster):
    open_notebook(page, "00_start_here.ipynb")
    connect = index_of(page, "connect(2)")
    for index in range(connect + 1):
        run_cell(page, index)
    wait_for(lambda: "2 ranks ready" in printed(page.evaluate(CELLS)[connect]))
    assert "engines of the running ipcluster" in printed(page.evaluate(CELLS)[connect])
    do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")


def test_05_trains_with_a_live_line_and_obeys_interrupt(page):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    run_all(page)
    training = index_of(page, "losses = train(")
    lines = set()

    def live():
        outputs = page.evaluate(CELLS)[training]["outputs"]
        lines.update(str(output["data"]) for output in outputs if "rank 0: loss" in str(output.get("data")))
        return len(lines) > 2 or is_idle(page)

    wait_for(live, RUN_SECONDS)
    assert len(lines) > 2
    menu(page, "Kernel", "Interrupt Kernel")
    wait_for(lambda: is_idle(page))
    assert "interrupted: these ranks are closed, connect() gives new ones" in printed(page.evaluate(CELLS)[training])
    connect = index_of(page, "connect(2)")
    run_cell(page, connect)
    wait_for(lambda: "2 ranks ready" in printed(page.evaluate(CELLS)[connect]) and is_idle(page))
    do(page, "jupyterapp.shell.currentWidget.sessionContext.restartKernel()")


@pytest.mark.skipif("CI" in os.environ, reason="CI has 35 minutes, and there nbval runs this notebook to its end")
def test_05_runs_to_its_end(page):
    open_notebook(page, "05_horovod_word2vec.ipynb")
    run_all(page)
    wait_for(lambda: is_idle(page), RUN_SECONDS)
    cells = code_cells(page)
    assert errors(cells) == [] and all(cell["count"] for cell in cells)


def test_shut_down_leaves_no_process(page, address):
    open_notebook(page, "00_start_here.ipynb")
    ranks = engines(kernel(page)) or start_ranks(page)
    port = int(re.search(r":(\d+)/", address)[1])
    server = next(c.pid for c in psutil.net_connections("tcp") if c.laddr.port == port and c.status == "LISTEN")
    family = [psutil.Process(server), *psutil.Process(server).children(recursive=True), *ranks]
    menu(page, "File", "Shut Down")
    page.locator("dialog button.jp-mod-accept, .jp-Dialog button.jp-mod-accept").click()
    _, left = psutil.wait_procs(family, timeout=60)
    assert [command_of(process) for process in left] == []
