"""The suite runs every test and every lesson, and notices a wrong cell, a missing Gloo, and a process left behind."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = "conftest.py", "pyproject.toml", "tests/nbval_sanitize.cfg"
LEAVES_A_CHILD = """
import subprocess
import sys


def test_leaves_a_child():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open("pid", "w") as file:
        file.write(str(child.pid))
"""
FAILS_ONCE = """
from pathlib import Path


def test_toy():
    seen = Path("seen").exists()
    Path("seen").touch()
    assert seen
"""
CELLS = {  # source: the output saved with it
    "assert 2 * 2 == 4\nprint(2 * 2)": "4\n",
    "print(2 * 2)": "5\n",
    "assert 2 * 2 == 5": "",
    "print('2 ranks ready: here')": "2 ranks ready: there\n",
    "import sys\nprint('rank', 1, 'is silent', file=sys.stderr)": "",
}


def run_pytest(folder, *options):
    """pytest in a folder, as a session of its own."""
    return run(folder, "-m", "pytest", "-p", "no:cacheprovider", *options)


def run(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "W2V_TEST_SESSION"} | {"CI": "true"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def folder(tmp_path):
    """A repository with the settings of this one."""
    for name in SETTINGS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "test_toy.py").write_text("def test_toy():\n    pass\n")
    return tmp_path


def write_lesson(folder, tags=(), extra=""):
    saved = [[new_output("stream", text=text)] if text else [] for text in CELLS.values()]
    metadata = {"tags": list(tags)}
    cells = [
        new_code_cell(source + extra, execution_count=n, outputs=saved[n - 1], metadata=metadata)
        for n, source in enumerate(CELLS, 1)
    ]
    kernel = {"name": "python3", "display_name": "Python 3"}
    (folder / "notebooks").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "notebooks" / "00_toy.ipynb")


def ended(said):
    """{name of a test or number of a cell: how it ended}."""
    found = re.findall(r"^(PASSED|FAILED) .*::(?:Cell )?(\w+)(?:@.*)?$", said, re.MULTILINE)
    return {name: end for end, name in found}


@pytest.mark.slow
def test_typed_in_the_root_it_collects_every_test_file_and_every_lesson():
    done = run_pytest(ROOT, "--nbval", "--collect-only", "-q")
    found = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    tests = {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")}
    lessons = {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert done.returncode == 0, done.stdout
    assert found == tests | lessons


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["pytest", "pytest -n 2"])
def test_right_cells_pass_and_wrong_ones_fail(folder, options):
    write_lesson(folder)
    done = run_pytest(folder, *options, "-rA", "--color=no")
    assert done.returncode == 1, done.stdout
    cells = {"0": "PASSED", "1": "FAILED", "2": "FAILED", "3": "PASSED", "4": "FAILED"}
    assert ended(done.stdout) == {"test_toy": "PASSED", **cells}
    assert "mismatch 'stdout'" in done.stdout and "AssertionError" in done.stdout
    assert re.search(r"^failed after \d+ min: notebooks/00_toy.ipynb::Cell 1", done.stdout, re.MULTILINE)
    assert re.search(r"^-+ stderr of the cell -+\nrank 1 is silent$", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_cells_that_need_gloo_are_skipped_where_there_is_none(folder):
    write_lesson(folder, tags=["needs-gloo"])
    with open(folder / "conftest.py", "a") as conftest:
        conftest.write("\n\nhas_gloo = lambda: False\n")
    done = run_pytest(folder)
    assert done.returncode == 0 and "1 passed, 5 skipped" in done.stdout, done.stdout
    assert "this Horovod has no Gloo" in done.stdout


@pytest.mark.slow
def test_without_hosts_a_lesson_about_them_runs_and_its_outputs_are_not_compared(folder):
    write_lesson(folder, extra="  # laptop_cluster")
    with open(folder / "conftest.py", "a") as conftest:
        conftest.write("\n\nwhy_no_hosts = lambda: 'no root here'\n")
    done = run_pytest(folder, "-rA", "--color=no")
    cells = {"0": "PASSED", "1": "PASSED", "2": "FAILED", "3": "PASSED", "4": "PASSED"}
    assert ended(done.stdout) == {"test_toy": "PASSED", **cells}
    assert "not compared: no root here" in done.stdout


@pytest.mark.slow
def test_process_left_behind_fails_the_session(folder):
    (folder / "tests" / "test_toy.py").write_text(LEAVES_A_CHILD)
    (folder / "notebooks").mkdir()
    done = run_pytest(folder)
    pid = int((folder / "pid").read_text())
    assert "1 passed" in done.stdout  # so that the exit code is about the process
    assert done.returncode == 6  # not 1, pytest's own, on which `make test` judges again
    assert f"{pid} {sys.executable} -c import time; time.sleep(60)" in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_what_fails_only_beside_a_neighbour_is_judged_again_and_said(folder):
    """A test that fails the first time, and a lesson that is wrong each time."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "judge_again.py", folder / "tools")
    (folder / "tests" / "test_toy.py").write_text(FAILS_ONCE)
    assert "can be judged again" in run(folder, "tools/judge_again.py").stderr

    assert run(folder, "-m", "pytest", "-n", "2").returncode == 1
    done = run(folder, "tools/judge_again.py")
    assert done.returncode == 0, done.stdout
    assert "tests/test_toy.py::test_toy: failed beside its neighbour, passed alone" in done.stdout

    (folder / "seen").unlink()
    write_lesson(folder)
    assert run(folder, "-m", "pytest", "-n", "2").returncode == 1
    done = run(folder, "tools/judge_again.py")
    assert done.returncode == 1
    assert "notebooks/00_toy.ipynb: failed again" in done.stdout and "test_toy: failed beside" in done.stdout
