"""What a notebook shows is what runs: with a wrong definition in a shown cell it fails; an edit reaches the ranks."""

import ast
import asyncio
import re

import nbformat
import notebook_rules as rules
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

pytestmark = [pytest.mark.ranks, pytest.mark.slow]
STILL = """
def {name}(*tables, **options):  # the step returns without updating
    return lambda *batch, **more: tf.constant(0.0)
"""
LOSES = """
def {name}(*arguments, **options):  # the first pair is lost
    return [side[1:] for side in as_shown(*arguments, **options)]
"""
SLOWER = """
def {name}(*tables, **options):  # learns a tenth slower
    step = as_shown(*tables, **options)
    return lambda centers, contexts, lr: step(centers, contexts, 0.9 * lr)
"""


def edited(number, name, text):
    """(a copy of the notebook whose cell that defines `name` defines it anew right below, the place of that cell)."""
    notebook = nbformat.read(rules.path_of(number), as_version=4)
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and re.search(rf"^def {name}\(", cell.source, re.MULTILINE):
            python = ast.parse(re.sub(r"(?m)^%", "# ", cell.source))  # as many lines, and no magic
            (end,) = [node.end_lineno for node in python.body if getattr(node, "name", "") == name]
            lines = cell.source.splitlines()
            lines[end:end] = [f"as_shown = {name}", text.format(name=name)]
            cell.source = "\n".join(lines)
            return notebook, place
    raise AssertionError(f"lesson {number} does not define {name}")


def run(notebook):
    """Every cell until one fails. Returns (its place, the name of its error), or None."""
    where = {"metadata": {"path": str(rules.ROOT / "notebooks")}}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where)
    failed = []
    client.on_cell_error = lambda cell, cell_index, execute_reply: failed.append(cell_index)
    try:
        asyncio.run(client.async_execute())
    except CellExecutionError as error:
        return failed[0], error.ename
    return None


def test_a_notebook_fails_when_a_shown_definition_is_wrong():
    notebook, place = edited("03", "pairs_within", LOSES)
    failure = run(notebook)
    assert failure is not None and failure[1] == "AssertionError" and failure[0] >= place, failure


def test_ranks_and_serial_run_stay_equal_when_the_shown_step_learns_a_tenth_slower_and_fail_when_it_stands_still():
    notebook, place = edited("09", "make_step", SLOWER)
    compared = (n for n, c in enumerate(notebook.cells) if re.search(r"^assert .*(EQUAL|largest_diff)", c.source, re.M))
    last = next(compared)
    assert last > place
    still, _ = edited("09", "make_step", STILL)
    notebook.cells = [*notebook.cells[: last + 1], *still.cells[place:]]  # in one kernel, on the same ranks
    failure = run(notebook)
    assert failure is not None and failure[1] == "AssertionError" and failure[0] > last, failure
