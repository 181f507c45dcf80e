"""Progress reads the readers' saved notebooks; fresh gives a lesson back and loses nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import my_lessons
import pytest

ROOT = Path(__file__).resolve().parent.parent

LESSON = "notebooks/03_skipgram_pairs.ipynb"
TOTAL = "notebooks/00_start_here.ipynb"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository of a reader, with two lessons: the one that the tool works on."""
    (tmp_path / "notebooks").mkdir()
    for name in (LESSON, TOTAL):
        shutil.copy(ROOT / name, tmp_path / name)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=r", "-c", "user.email=r@r", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    monkeypatch.setattr(my_lessons, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def tool(monkeypatch, capsys):
    """A function: what the tool prints, or the one sentence with which it ends."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["my_lessons.py", *arguments])
        try:
            my_lessons.main()
        except SystemExit as end:
            assert "\n" not in end.code
            return end.code
        return capsys.readouterr().out

    return run


def edited(path, name, said):
    """Save the lesson as if its check of `name` had printed `said`."""
    notebook = json.loads(path.read_text())
    cell = next(cell for cell in notebook["cells"] if f"def {name}(" in "".join(cell["source"]) and "outputs" in cell)
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}]
    path.write_text(json.dumps(notebook))


def test_progress_tells_what_the_checks_last_said(clone, tool):
    edited(clone / TOTAL, "total_of", "correct\n")
    edited(clone / TOTAL, "global_mean", "not yet: 2.5 is the mean of the means; rank 0 has three\ntimes as many\n")
    lines = [line.strip() for line in tool("progress").splitlines()]
    assert "total_of: right" in lines and "average_rows: not tried" in lines
    assert "global_mean: wrong: 2.5 is the mean of the means; rank 0 has three times as many" in lines
    assert lines[-1].startswith("1 of ") and "07_collectives: not here" in lines


def test_progress_goes_on_after_a_notebook_and_a_cell_that_cannot_be_read(clone, tool):
    edited(clone / TOTAL, "total_of", "correct\n")
    (clone / TOTAL).write_text((clone / TOTAL).read_text().replace("def total_of(", "def total_of(("))
    (clone / LESSON).write_text("")
    said = tool("progress")
    assert "total_of: not tried" in said and "make fresh LESSON=03" in said


def test_fresh_gives_the_lesson_back_and_keeps_the_copy(clone, tool):
    before = (clone / LESSON).read_bytes()
    (clone / LESSON).write_text("my work")
    said = tool("fresh", "03")
    (aside,) = (clone / "notebooks" / "mine").iterdir()
    assert aside.read_text() == "my work" and f"mine/{aside.name}" in said
    assert (clone / LESSON).read_bytes() == before
    assert tool("fresh", "03") == "03_skipgram_pairs.ipynb is as it was.\n"
    assert len(list((clone / "notebooks" / "mine").iterdir())) == 1
    (clone / LESSON).unlink()
    assert "as it was" in tool("fresh", "03") and (clone / LESSON).read_bytes() == before


def test_fresh_of_no_lesson_and_without_a_repository_is_one_sentence(clone, tool):
    for number in ("3", "77", "notebooks"):
        assert tool("fresh", number).startswith("There is no lesson")
    shutil.rmtree(clone / ".git")
    assert "git says" in tool("fresh", "03") and (clone / LESSON).exists()


def test_it_runs_as_make_calls_it():
    command = [sys.executable, "tools/my_lessons.py", "progress"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "\n03_skipgram_pairs\n" in done.stdout
