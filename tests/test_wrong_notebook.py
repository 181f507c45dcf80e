"""The suite notices a notebook that no longer tells the truth, and a process left behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parent.parent
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "--nbval-sanitize-with"]
LEAVES_A_CHILD = """
import subprocess
import sys


def test_leaves_a_child():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open("pid", "w") as file:
        file.write(str(child.pid))
"""


def run_pytest(folder, *arguments):
    """pytest with this repository's conftest.py, as a session of its own, on files in `folder`."""
    shutil.copy(ROOT / "conftest.py", folder)
    environment = {name: value for name, value in os.environ.items() if name != "W2V_TEST_SESSION"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def run_notebook(folder, source, saved_text):
    """nbval, as `make test` calls it, on a notebook with one cell and its saved output."""
    saved = [new_output("stream", text=saved_text)] if saved_text else []
    cell = new_code_cell(source, execution_count=1, outputs=saved)
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(new_notebook(cells=[cell], metadata={"kernelspec": kernel}), folder / "toy.ipynb")
    return run_pytest(folder, *NBVAL, ROOT / "tests" / "nbval_sanitize.cfg", "toy.ipynb")


def test_right_notebook_passes(tmp_path):
    done = run_notebook(tmp_path, "assert 2 * 2 == 4\nprint(2 * 2)", "4\n")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("source", "saved_text", "reason"),
    [("print(2 * 2)", "5\n", "mismatch 'stdout'"), ("assert 2 * 2 == 5", "", "AssertionError")],
    ids=["another output", "a false assert"],
)
def test_wrong_notebook_fails(source, saved_text, reason, tmp_path):
    done = run_notebook(tmp_path, source, saved_text)
    assert done.returncode == 1, done.stdout
    assert reason in done.stdout
    assert "1 failed" in done.stdout


def test_process_left_behind_fails_the_session(tmp_path):
    (tmp_path / "test_leaves.py").write_text(LEAVES_A_CHILD)
    done = run_pytest(tmp_path, "test_leaves.py")
    pid = int((tmp_path / "pid").read_text())
    assert "1 passed" in done.stdout  # so that the exit code is about the process
    assert done.returncode == 1
    assert f"{pid} {sys.executable} -c import time; time.sleep(60)" in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
