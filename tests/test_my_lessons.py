"""Progress reads the readers' saved notebooks; fresh gives a lesson back and loses nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LESSON = "notebooks/03_skipgram_pairs.ipynb"
TOTAL = "notebooks/00_start_here.ipynb"


@pytest.fixture
def clone(tmp_path):
    """A repository of a reader, with two lessons and the tool."""
    for name in ("exercises", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "notebooks").mkdir()
    for name in (LESSON, TOTAL):
        shutil.copy(ROOT / name, tmp_path / name)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=r", "-c", "user.email=r@r", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    return tmp_path


def tool(folder, *arguments):
    command = [sys.executable, folder / "tools" / "my_lessons.py", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)}
    )


def edited(path, name, said):
    """Save the lesson as if its check of `name` had printed `said`."""
    notebook = json.loads(path.read_text())
    cell = next(cell for cell in notebook["cells"] if f"def {name}(" in "".join(cell["source"]) and "outputs" in cell)
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}]
    path.write_text(json.dumps(notebook))


def test_progress_tells_what_the_checks_last_said(clone):
    edited(clone / TOTAL, "total_of", "correct\n")
    edited(clone / TOTAL, "global_mean", "not yet: 2.5 is the mean of the means; rank 0 has three\ntimes as many\n")
    done = tool(clone, "progress")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert "total_of: right" in lines and "average_rows: not tried" in lines
    assert "global_mean: wrong: 2.5 is the mean of the means; rank 0 has three times as many" in lines
    assert lines[-1].startswith("1 of ") and "07_collectives: not here" in lines


def test_progress_goes_on_after_a_notebook_and_a_cell_that_cannot_be_read(clone):
    (clone / TOTAL).write_text((clone / TOTAL).read_text().replace("def total_of(", "def total_of(("))
    (clone / LESSON).write_text("")
    done = tool(clone, "progress")
    assert done.returncode == 0, done.stderr
    assert "total_of: not tried" in done.stdout and "make fresh LESSON=03" in done.stdout


def test_fresh_gives_the_lesson_back_and_keeps_the_copy(clone):
    before = (clone / LESSON).read_bytes()
    (clone / LESSON).write_text("my work")
    done = tool(clone, "fresh", "03")
    assert done.returncode == 0, done.stderr
    (aside,) = (clone / "notebooks" / "mine").iterdir()
    assert aside.read_text() == "my work" and f"mine/{aside.name}" in done.stdout
    assert (clone / LESSON).read_bytes() == before
    assert tool(clone, "fresh", "03").stdout == "03_skipgram_pairs.ipynb is as it was.\n"
    assert len(list((clone / "notebooks" / "mine").iterdir())) == 1
    (clone / LESSON).unlink()
    assert tool(clone, "fresh", "03").returncode == 0 and (clone / LESSON).read_bytes() == before


def test_fresh_of_no_lesson_and_without_a_repository_is_one_sentence(clone):
    for number in ("3", "77", "notebooks"):
        done = tool(clone, "fresh", number)
        assert done.returncode == 1 and done.stderr.startswith("There is no lesson") and done.stderr.count("\n") == 1
    shutil.rmtree(clone / ".git")
    done = tool(clone, "fresh", "03")
    assert done.returncode == 1 and "git says" in done.stderr and done.stderr.count("\n") == 1
    assert (clone / LESSON).exists()
