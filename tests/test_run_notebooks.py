"""What `make run` and `run_notebooks.py --measure` promise."""

import re
import signal
import subprocess
import sys

import nbformat
import psutil
import pytest
import run_notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from waiting import wait_for

pytestmark = pytest.mark.slow
TOOL = run_notebooks.__file__


def write_notebook(path, *sources):
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


def run(out, *notebooks):
    command = [sys.executable, TOOL, "--out", out, *notebooks]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_wrong_notebook_and_a_dying_kernel_are_reported_and_the_next_one_runs(tmp_path):
    wrong = write_notebook(tmp_path / "01_wrong.ipynb", "1 + 1", "assert 2 + 2 == 5, 'sums'")
    died = write_notebook(tmp_path / "02_died.ipynb", "import os; os.write(2, b'last words'); os.abort()")
    right = write_notebook(tmp_path / "03_right.ipynb", "import sys, os; print(sys.executable, os.getcwd())")
    before = [path.read_bytes() for path in (wrong, died, right)]
    done = run(tmp_path / "pages", wrong, died, right)
    assert done.returncode == 1 and done.stderr.strip() == "failed: 01_wrong.ipynb, 02_died.ipynb"
    for name, how in (("01_wrong", "FAILED"), ("02_died", "FAILED"), ("03_right", "ok")):
        assert re.search(rf"^{name}\.ipynb +{how}  \d+ s$", done.stdout, re.MULTILINE)
    assert "In [2]: AssertionError: sums" in done.stdout and "Kernel died" in done.stdout
    assert "last words" in (tmp_path / "pages" / "02_died.log").read_text()
    failed, passed = (nbformat.read(tmp_path / "pages" / path.name, 4).cells[-1].outputs[0] for path in (wrong, right))
    assert failed.ename == "AssertionError" and passed.text == f"{sys.executable} {tmp_path}\n"
    assert [path.read_bytes() for path in (wrong, died, right)] == before


def test_a_missing_file_is_named(tmp_path):
    done = run(tmp_path, "nowhere.ipynb")
    assert done.returncode == 2 and done.stderr.endswith("error: no such file: nowhere.ipynb\n")


def test_an_interrupted_run_ends_its_kernel_normally(tmp_path):
    """As far as the kernel's own exit handlers, which stop the engines; no further notebook is begun."""
    slow = write_notebook(
        tmp_path / "slow.ipynb",
        "import atexit, os, pathlib, time; atexit.register(pathlib.Path('exited').touch)",
        "pathlib.Path('pid').write_text(str(os.getpid())); pathlib.Path('started').touch(); time.sleep(60)",
    )
    command = [sys.executable, TOOL, "--out", tmp_path / "pages", slow, slow]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_for((tmp_path / "started").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 130 and out.splitlines()[0].endswith("interrupted") and len(out.splitlines()) == 1
    wait_for((tmp_path / "exited").exists)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_measured_run_is_written_into_the_header_and_the_table(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path, page = tmp_path / "notebooks" / "05_toy.ipynb", tmp_path / "docs" / "lessons.md"
    opening = new_markdown_cell(
        "# Toy\n\n**It takes you** about 50 minutes.\n\n"
        "**It takes the machine** about 1 min on 2 cores, and 9.0 GB of memory.\n"
    )
    nbformat.write(new_notebook(cells=[opening]), path)
    page.parent.mkdir()
    page.write_text("# Toy\n\n| [5 a](../notebooks/05_toy.ipynb) | doubling | 9 min | 3 s | 9.9 GB |\n| else | x |\n")
    run_notebooks.write_header(path, seconds=116.2, memory=1.21e9)
    assert run_notebooks.takes(path) == ("50 min", "2 min", "1.3 GB")
    run_notebooks.fill_table(page)
    row = "| [5 a](../notebooks/05_toy.ipynb) | doubling | 50 min | 2 min | 1.3 GB |"
    assert f"{row}\n| else | x |\n" in page.read_text()


def test_memory_is_that_of_all_processes_together():
    program = "import sys, time; block = bytearray(200_000_000); print(1, flush=True); time.sleep(60)"
    with run_notebooks.Memory() as memory:
        children = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
        for child in children:
            child.stdout.readline()
        wait_for(lambda: memory.peak > 400_000_000, 30, every=0.1)
        for child in children:
            child.kill()
            child.communicate()
    assert 400_000_000 < memory.peak < 500_000_000
