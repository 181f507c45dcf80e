"""The suite runs every test and every lesson, and notices a wrong cell, a missing Gloo, and a process left behind."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import judge_again
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
CELLS = {  # source: the output saved with it
    "assert 2 * 2 == 4\nprint(2 * 2)": "4\n",
    "print(2 * 2)": "5\n",
    "assert 2 * 2 == 5": "",
    "print('2 ranks ready: here')": "2 ranks ready: there\n",
    "import sys\nprint('rank', 1, 'is silent', file=sys.stderr)": "",
}


def run_pytest(folder, *options):
    """Pytest in a folder, as a session of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "W2V_TEST_SESSION"} | {"CI": "true"}
    command = [sys.executable, "-m", "pytest", "--color=no", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def folder(tmp_path):
    """A repository with the settings of this one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "notebooks").mkdir()
    for name in SETTINGS:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "test_toy.py").write_text("def test_toy():\n    pass\n")
    return tmp_path


def write_lesson(folder, name, tags=(), extra=""):
    notebook = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for source, text in CELLS.items():
        saved = [new_output("stream", text=text)] if text else []
        count = len(notebook.cells) + 1
        cell = new_code_cell(source + extra, execution_count=count, outputs=saved, metadata={"tags": list(tags)})
        notebook.cells.append(cell)
    nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")


def ended(done, lesson):
    """How each cell of a lesson ended that was not skipped: {its number: "PASSED" or "FAILED"}."""
    found = re.findall(rf"^(PASSED|FAILED) notebooks/{lesson}.ipynb::Cell (\d+)", done.stdout, re.MULTILINE)
    return {int(number): end for end, number in found}


def test_typed_in_the_root_it_runs_every_test_file_and_every_lesson(request):
    """Looks at this session, if nothing in its command chose tests."""
    config = request.config
    if config.args != config.getini("testpaths") or config.option.markexpr or config.option.keyword:
        pytest.skip("some tests were chosen")
    found = {item.path for item in request.session.items}
    assert found == {*(ROOT / "tests").glob("test_*.py"), *(ROOT / "notebooks").glob("*.ipynb")}


def test_right_cells_pass_wrong_ones_fail_and_what_a_machine_lacks_skips_cells_and_comparisons(folder):
    """A lesson that is compared; one whose cells need Gloo, and are skipped; one about hosts, whose outputs count not.

    judge_again finds what failed.
    """
    write_lesson(folder, "00_toy")
    write_lesson(folder, "01_gloo", tags=["needs-gloo"])
    write_lesson(folder, "02_hosts", extra="  # laptop_cluster")
    with open(folder / "conftest.py", "a") as conftest:
        conftest.write("\n\nhas_gloo = lambda: False\nwhy_no_hosts = lambda: 'no root here'\n")
    done = run_pytest(folder, "-n", "2", "-rA")
    assert done.returncode == 1 and "4 failed, 7 passed, 5 skipped" in done.stdout, done.stdout
    assert ended(done, "00_toy") == {0: "PASSED", 1: "FAILED", 2: "FAILED", 3: "PASSED", 4: "FAILED"}
    assert ended(done, "01_gloo") == {} and "this Horovod has no Gloo" in done.stdout
    assert ended(done, "02_hosts") == {0: "PASSED", 1: "PASSED", 2: "FAILED", 3: "PASSED", 4: "PASSED"}
    assert "not compared: no root here" in done.stdout
    assert "mismatch 'stdout'" in done.stdout and "AssertionError" in done.stdout
    assert re.search(r"^failed after \d+ min: notebooks/00_toy.ipynb::Cell 1", done.stdout, re.MULTILINE)
    assert re.search(r"^-+ stderr of the cell -+\nrank 1 is silent$", done.stdout, re.MULTILINE)
    lessons = ["notebooks/00_toy.ipynb", "notebooks/02_hosts.ipynb"]
    assert judge_again.failed(folder / ".pytest_cache/v/cache/lastfailed") == lessons


def test_what_fails_only_beside_a_neighbour_is_judged_again_and_said(tmp_path, monkeypatch, capsys):
    record = tmp_path / ".pytest_cache/v/cache/lastfailed"
    record.parent.mkdir(parents=True)
    monkeypatch.setattr(judge_again, "ROOT", tmp_path)
    monkeypatch.setattr(judge_again.subprocess, "run", fails_if_a_lesson)
    assert "can be judged again" in judge_again.main()
    test = "tests/test_toy.py::test_toy"
    record.write_text(json.dumps({f"{test}@test_toy.py": True}))
    assert judge_again.main() == 0
    assert capsys.readouterr().out == f"{test}: failed beside its neighbour, passed alone; it needs mending\n"
    record.write_text(json.dumps({test: True, "notebooks/00_toy.ipynb::Cell 1": True}))
    assert judge_again.main() == 1
    assert "notebooks/00_toy.ipynb: failed again" in capsys.readouterr().out
    record.write_text(json.dumps(dict.fromkeys("abcd", True)))
    assert "4 tests and lessons failed, too many" in judge_again.main()


def fails_if_a_lesson(command, **options):
    return subprocess.CompletedProcess(command, returncode=int(command[-1].endswith(".ipynb")))


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
