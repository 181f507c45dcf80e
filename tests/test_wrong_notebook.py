"""The suite notices a notebook that no longer tells the truth, and a process left behind."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
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


CELLS = {  # source: the output saved with it
    "assert 2 * 2 == 4\nprint(2 * 2)": "4\n",
    "print(2 * 2)": "5\n",
    "assert 2 * 2 == 5": "",
}


def test_right_cells_pass_and_wrong_ones_fail(tmp_path):
    """nbval, as `make test` calls it, on a notebook with a right cell, another output and a false assert."""
    saved = [[new_output("stream", text=text)] if text else [] for text in CELLS.values()]
    cells = [new_code_cell(source, execution_count=n, outputs=saved[n - 1]) for n, source in enumerate(CELLS, 1)]
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), tmp_path / "toy.ipynb")
    done = run_pytest(tmp_path, *NBVAL, ROOT / "tests" / "nbval_sanitize.cfg", "-rA", "toy.ipynb")
    assert done.returncode == 1, done.stdout
    ended = set(re.findall(r"^(PASSED|FAILED) .*::Cell (\d)$", done.stdout, re.MULTILINE))
    assert ended == {("PASSED", "0"), ("FAILED", "1"), ("FAILED", "2")}
    assert "mismatch 'stdout'" in done.stdout and "AssertionError" in done.stdout


def test_process_left_behind_fails_the_session(tmp_path):
    (tmp_path / "test_leaves.py").write_text(LEAVES_A_CHILD)
    done = run_pytest(tmp_path, "test_leaves.py")
    pid = int((tmp_path / "pid").read_text())
    assert "1 passed" in done.stdout  # so that the exit code is about the process
    assert done.returncode == 1
    assert f"{pid} {sys.executable} -c import time; time.sleep(60)" in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
