"""What the pages of docs/ quote from the lessons' saved runs is what these printed; sums and figures likewise."""

import json
import re
import sys
from pathlib import Path

import nbformat
import numpy as np

from helpers.plots import median_and_range

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import where_it_arrives  # noqa: E402

CALCULATOR, SPEED, PLANS, LESSONS = (
    " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())
    for name in ("calculator.md", "speed.md", "instructors.md", "lessons.md")
)


def printed(lesson):
    """Everything that the cells of a lesson printed, as one text; its tables are Markdown."""
    (path,) = (ROOT / "notebooks").glob(f"{lesson}_*.ipynb")
    outputs = [out for cell in nbformat.read(path, 4).cells for out in cell.get("outputs", [])]
    return "\n".join(out.get("text") or out.get("data", {}).get("text/markdown", "") for out in outputs)


def test_the_calculator_says_how_far_the_lessons_were_off():
    table = printed("12").partition("| measured / model |\n")[2].partition("\n\n")[0]
    ratios = [float(line.split("|")[-2]) for line in table.splitlines()[1:] if line.count("|") == 8]
    assert len(ratios) == 7 and f"seven strategies ran at {min(ratios)} to {max(ratios)} times" in CALCULATOR
    (low_high,) = re.findall(r"predicted / measured: ([\d.]+ to [\d.]+)", printed("24"))
    (right,) = re.findall(r"right about whether it pays: (\d+ of \d+ rows)", printed("24"))
    assert f"the predicted speed-ups are {low_high} times the measured ones" in CALCULATOR and right in CALCULATOR
    assert printed("24").count("wrong about a gain") == 1


def test_speed_has_the_table_of_its_benchmark():
    record = json.loads((ROOT / "benchmarks" / "results" / "models.json").read_text(encoding="utf-8"))
    for row in record["rows"]:
        times = [f"{np.median(row['ms'][way]):.1f}" for way in ("alone", "beside", "together")]
        times.append(f"{np.median(row['predicted_by_messages_counted']):.1f}")
        shown = [*times, median_and_range(row["ratio_by_messages_counted"])]
        assert f"| {row['messages_counted']:.1f} | {' | '.join(shown)} |" in SPEED, row["model"]


def test_the_plans_have_the_minutes_of_the_lessons():
    minutes = dict(re.findall(r"\[(\d\d) [^|]*\|[^|]*\| (\d+) min \|", LESSONS))
    plans = re.findall(r"(\d\d(?:, \d\d)+) \((\d+) minutes\)", PLANS)
    assert len(plans) == 3
    for lessons, total in plans:
        assert sum(int(minutes[lesson]) for lesson in lessons.split(", ")) == int(total), lessons


def test_the_figure_of_the_start_page_is_that_of_the_record(tmp_path, monkeypatch):
    (tmp_path / "figures").mkdir()
    monkeypatch.setattr(where_it_arrives, "ROOT", tmp_path)
    where_it_arrives.draw()
    drawn = (tmp_path / "figures" / "where_it_arrives.svg").read_text()
    assert drawn == (ROOT / "figures" / "where_it_arrives.svg").read_text()
    rows = json.loads(where_it_arrives.RECORD.read_text())
    assert drawn.count("<rect") == 1 + sum(row["system"] in where_it_arrives.SYSTEMS for row in rows)
