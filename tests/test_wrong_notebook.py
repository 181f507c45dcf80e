"""The suite runs every test and every lesson, and notices a wrong cell, a missing Gloo, and a process left behind."""

import json
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

pytestmark = pytest.mark.slow
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


def run(folder, *arguments):
    """Python in a folder, as a session of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "W2V_TEST_SESSION"} | {"CI": "true"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def run_pytest(folder, *options):
    return run(folder, "-m", "pytest", "--color=no", *options)


@pytest.fixture
def folder(tmp_path):
    """A repository with the settings of this one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "notebooks").mkdir()
    for name in SETTINGS:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "test_toy.py").write_text("def test_toy():\n    pass\n")
    return tmp_path


def write_lesson(folder, name="00_toy", tags=(), extra=""):
    notebook = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for source, text in CELLS.items():
        saved = [new_output("stream", text=text)] if text else []
        count = len(notebook.cells) + 1
        cell = new_code_cell(source + extra, execution_count=count, outputs=saved, metadata={"tags": list(tags)})
        notebook.cells.append(cell)
    nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")


def ended(done):
    """{name of a test or number of a cell: how it ended}."""
    found = re.findall(r"^(PASSED|FAILED) .*::(?:Cell )?(\w+)(?:@.*)?$", done.stdout, re.MULTILINE)
    return {name: end for end, name in found}


def test_typed_in_the_root_it_collects_every_test_file_and_every_lesson():
    done = run_pytest(ROOT, "--nbval", "--collect-only", "-q", "-p", "no:cacheprovider")
    found = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    tests = {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")}
    lessons = {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert done.returncode == 0, done.stdout
    assert found == tests | lessons


def test_right_cells_pass_and_wrong_ones_fail_and_what_fails_only_beside_a_neighbour_is_judged_again_and_said(folder):
    """A test that fails the first time, and a lesson that is wrong each time."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "judge_again.py", folder / "tools")
    (folder / "tests" / "test_toy.py").write_text(FAILS_ONCE)
    write_lesson(folder)
    assert "can be judged again" in run(folder, "tools/judge_again.py").stderr

    done = run_pytest(folder, "-n", "2", "-rA")
    assert done.returncode == 1, done.stdout
    cells = {"0": "PASSED", "1": "FAILED", "2": "FAILED", "3": "PASSED", "4": "FAILED"}
    assert ended(done) == {"test_toy": "FAILED", **cells}
    assert "mismatch 'stdout'" in done.stdout and "AssertionError" in done.stdout
    assert re.search(r"^failed after \d+ min: notebooks/00_toy.ipynb::Cell 1", done.stdout, re.MULTILINE)
    assert re.search(r"^-+ stderr of the cell -+\nrank 1 is silent$", done.stdout, re.MULTILINE)

    done = run(folder, "tools/judge_again.py")
    assert done.returncode == 1
    assert "tests/test_toy.py::test_toy: failed beside its neighbour, passed alone" in done.stdout
    assert "notebooks/00_toy.ipynb: failed again" in done.stdout

    cache = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    cache.write_text(json.dumps({name: True for name in json.loads(cache.read_text()) if "test_toy" in name}))
    done = run(folder, "tools/judge_again.py")
    assert done.returncode == 0, done.stdout


def test_what_a_machine_lacks_skips_cells_and_comparisons(folder):
    """Cells that need Gloo are skipped; the outputs of a lesson about hosts are not compared."""
    write_lesson(folder, "00_gloo", tags=["needs-gloo"])
    write_lesson(folder, "01_hosts", extra="  # laptop_cluster")
    with open(folder / "conftest.py", "a") as conftest:
        conftest.write("\n\nhas_gloo = lambda: False\nwhy_no_hosts = lambda: 'no root here'\n")
    done = run_pytest(folder, "-rA")
    assert "1 failed, 5 passed, 5 skipped" in done.stdout, done.stdout
    assert "this Horovod has no Gloo" in done.stdout and "not compared: no root here" in done.stdout
    cells = {"0": "PASSED", "1": "PASSED", "2": "FAILED", "3": "PASSED", "4": "PASSED"}
    assert ended(done) == {"test_toy": "PASSED", **cells}


def test_process_left_behind_fails_the_session(folder):
    (folder / "tests" / "test_toy.py").write_text(LEAVES_A_CHILD)
    settings = (folder / "conftest.py").read_text()
    (folder / "conftest.py").write_text(settings.replace("time.monotonic() + 30", "time.monotonic() + 1"))  # patience
    done = run_pytest(folder)
    pid = int((folder / "pid").read_text())
    assert "1 passed" in done.stdout  # so that the exit code is about the process
    assert done.returncode == 6  # not 1, pytest's own, on which `make test` judges again
    assert f"{pid} {sys.executable} -c import time; time.sleep(60)" in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
