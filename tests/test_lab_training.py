"""Notebook 05 in JupyterLab, in a browser: run to its end, interrupted while it trains, shut down."""

import re

import psutil
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
from waiting import wait_for

pytestmark = BROWSER


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
