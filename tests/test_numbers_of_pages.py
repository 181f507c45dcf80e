"""What the pages of docs/ quote from the lessons' saved runs is what these printed; sums and figures likewise."""

import json
import re
from pathlib import Path

import notebook_rules as rules
import numpy as np
import where_it_arrives

from helpers.plots import median_and_range

ROOT = Path(__file__).resolve().parent.parent

CALCULATOR, SPEED, SIDE_BY_SIDE, PLANS, LESSONS = (
    " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())
    for name in ("calculator.md", "speed.md", "side_by_side.md", "instructors.md", "lessons.md")
)
MINUTES = dict(re.findall(r"\[(\d\d) [^|]*\|[^|]*\| (\d+) min \|", LESSONS))


def printed(lesson):
    """Everything that the cells of a lesson printed, as one text; its tables are Markdown."""
    outputs = [out for cell in rules.cells(rules.path_of(lesson)) for out in cell.get("outputs", [])]
    return "\n".join(out.get("text") or out.get("data", {}).get("text/markdown", "") for out in outputs)


def test_the_calculator_says_how_far_the_lessons_were_off():
    table = printed("12").partition("| measured / model |\n")[2].partition("\n\n")[0]
    ratios = [float(line.split("|")[-2]) for line in table.splitlines()[1:] if line.count("|") == 8]
    assert len(ratios) == 7 and f"seven strategies ran at {min(ratios)} to {max(ratios)} times" in CALCULATOR
    (low_high,) = re.findall(r"predicted / measured: ([\d.]+ to [\d.]+)", printed("24"))
    (right,) = re.findall(r"right about whether it pays: (\d+ of \d+ rows)", printed("24"))
    assert f"the predicted speed-ups are {low_high} times the measured ones" in CALCULATOR and right in CALCULATOR
    assert printed("24").count("wrong about a gain") == 1


def test_speed_has_the_tables_of_its_benchmarks():
    record = json.loads((ROOT / "benchmarks" / "results" / "models.json").read_text(encoding="utf-8"))
    for row in record["rows"]:
        alone, beside, measured = (f"{np.median(row['ms'][way]):.1f}" for way in ("alone", "beside", "together"))
        predicted = f"{np.median(row['predicted_by_messages_counted']):.1f}"
        ratio = median_and_range(1 / np.array(row["ratio_by_messages_counted"]))
        assert f"| {measured} | {predicted} | {ratio} |" in SPEED, row["model"]
        sent = f"{row['bytes_counted'] / 1e6:.2f} | {row['tensors_counted']:.0f} → {row['messages_counted']:.1f}"
        assert f"| {row['model']} | {sent} | {alone} → {beside} |" in SPEED
    rows = json.loads((ROOT / "benchmarks" / "results" / "words_per_second.json").read_text(encoding="utf-8"))
    (gensim,) = (row["words_per_s"] for row in rows if row["system"] == "gensim")
    for row in rows:
        if row["system"] != "canonical":
            ratio = f"{row['words_per_s'] / gensim:.1f}".replace("1.0", "1")
            assert f" | {row['words_per_s'] / 1e6:.2f} | {ratio} | {row['wordsim353']:.2f} |" in SPEED, row["system"]


def test_speed_has_the_medians_of_many_ranks():
    record = json.loads((ROOT / "benchmarks" / "results" / "many_ranks.json").read_text(encoding="utf-8"))
    speeds = {int(n): np.median([row["words_per_s"] for row in rows]) for n, rows in record["runs"].items()}
    four, eight, sixteen = (f"{speeds[n] / speeds[2]:.2f}" for n in (4, 8, 16))
    assert f"Four reach {four} of their words/s, eight {eight}, sixteen {sixteen}," in SPEED


def printed_numbers(lesson, pattern):
    """The numbers that follow a pattern in what a lesson printed, in their order."""
    return [float(found.replace(",", "")) for found in re.findall(pattern + r"\s*([\d.,]*\d)", printed(lesson))]


def speeds_of_25():
    """Million words/s of one process and of two ranks."""
    return [printed_numbers("25", rf"{way}:")[0] for way in ("one process", "two ranks")]


def speeds_of_the_saved_runs():
    """{lesson, section: (one process, two)} as docs/side_by_side.md writes them; 1,000 pairs/s, in 25 words."""
    (both,) = [float(n.replace(",", "")) for n in re.findall(r"([\d,]+) pairs per second", printed("00"))]
    of_one, of_two = (512 / printed_numbers("09", rf"\| {way} \|")[0] for way in ("one thread", "two ranks"))
    alone = printed_numbers("12", r"\| 1 rank \|")[:4]  # of the recipe, bigger batches, local SGD, overlap
    recipe, bigger, overlap = (
        printed_numbers("12", rf"\| {name} \|")[0] for name in ("canonical", "bigger batch", "overlap")
    )
    own_ms = sum(printed_numbers("15", rf"in this process +{part}")[0] for part in ("pull", "compute", "push"))
    (bound,) = printed_numbers("15", "pairs a second:")
    text = " ".join(" ".join(cell.source for cell in rules.cells(rules.path_of("17"))).split())
    said = r"one process then trains (\d+) thousand pairs/s, two ranks (\d+) and the servers (\d+)"
    serial, ranks, servers = re.search(said, text).groups()  # the lesson draws them
    words, words_of_two = speeds_of_25()
    return {
        ("00", "Two ranks train word2vec"): ("not timed", f"{both / 1e3:.0f}"),
        ("09", "The time of a step"): (f"{of_one:.0f}", f"{of_two:.0f}"),
        ("12", "1: the recipe"): (f"{alone[0]:.0f}", f"{recipe:.0f}"),
        ("12", "2: bigger batches"): (f"{alone[1]:.0f}", f"{bigger:.0f}"),
        ("12", "5: overlap"): (f"{alone[3]:.0f}", f"{overlap:.0f}"),
        ("15", "Who waits for what?"): (f"{512 / own_ms:.0f} (bound)", f"{bound / 1e3:.0f} (bound)"),
        ("17", "The verdict"): (serial, f"{ranks} ranks, {servers} servers"),
        ("25", "What to take away"): (f"{words} million words/s", f"{words_of_two} million words/s"),
    }


def test_speeds_side_by_side_are_those_of_the_saved_runs():
    rows = (ROOT / "docs" / "side_by_side.md").read_text(encoding="utf-8").splitlines()
    found = {}
    for row in rows:
        if begins := re.match(r"\| \[(\d\d)\]\(\.\./notebooks/\w+\.ipynb\), ([^|]+) \|", row):
            found[begins[1], begins[2]] = tuple(cell.strip() for cell in row.split("|")[4:6])
    assert found == speeds_of_the_saved_runs()
    for (lesson, section), _ in found.items():
        path = rules.path_of(lesson)
        assert re.search(rf"#+ {re.escape(section)}", path.read_text(encoding="utf-8")), (lesson, section)


def test_speeds_side_by_side_has_the_ratios_of_its_table_and_of_the_record():
    speeds = speeds_of_the_saved_runs()
    alone = [float(speeds["12", section][0]) for section in ("1: the recipe", "2: bigger batches", "5: overlap")]
    assert f"12 beside itself: {', '.join(f'{x:.0f}' for x in alone)} in one process" in SIDE_BY_SIDE
    assert f"itself {alone[2] / alone[0]:.0f} times as fast as the recipe's" in SIDE_BY_SIDE
    ms = printed_numbers("12", r"\| 1 rank \| [\d.]+ \|")[3]
    assert f"one of 12 for {ms:.0f} ms" in SIDE_BY_SIDE
    (bundled,) = re.findall(r"bundles against plain steps: .*, ([\d.]+) \(", printed("16"))
    assert f"in one call train {bundled} times the pairs/s" in SIDE_BY_SIDE
    record = json.loads((ROOT / "benchmarks" / "results" / "words_per_second.json").read_text(encoding="utf-8"))
    one, two = ([row for row in record if row["system"] == "blocks" and row["ranks"] == n][0] for n in (1, 2))
    said = f"two ranks train {two['words_per_s'] / 1e6:.2f} million words/s and one {one['words_per_s'] / 1e6:.2f}"
    assert said in SIDE_BY_SIDE
    words, words_of_two = speeds_of_25()
    ratio = two["words_per_s"] / one["words_per_s"]
    assert f"{words_of_two / words:.2f} and {ratio:.2f}." in SIDE_BY_SIDE
    assert "600,000 words," in printed("25") and "of 50" in printed("25")  # 2 ranks, 5 epochs: 30,000 words an interval
    assert f"a rank of 25 computes for {30 / words:.0f} ms" in SIDE_BY_SIDE
    of_rank_0 = two["time_of_rank_0"]["spent"]  # 50 intervals
    assert f"computes {of_rank_0['training'] * 20:.0f} ms between two exchanges" in SIDE_BY_SIDE
    assert f"takes {of_rank_0['Horovod'] * 20:.0f} ms of them" in SIDE_BY_SIDE
    assert f"wait {of_rank_0['waiting for Horovod'] * 20:.1f} ms" in SIDE_BY_SIDE


def test_speeds_side_by_side_has_the_record_of_the_articles_numbers():
    one, two = json.loads((ROOT / "benchmarks" / "results" / "full_size.json").read_text(encoding="utf-8"))["rows"]
    speeds = [f"{row['pairs_per_s'] / 1e3:.0f}" for row in (one, two)]
    assert f"unshortened: {speeds[0]} in one process, {speeds[1]} on two ranks" in SIDE_BY_SIDE
    assert f"{one['seconds']:.0f} s and {two['seconds']:.0f} s" in SIDE_BY_SIDE
    assert f"(WordSim-353 {one['wordsim353']:.2f} and {two['wordsim353']:.2f}, one seed)" in SIDE_BY_SIDE


def test_lesson_25_counts_with_its_own_speeds():
    """An interval of two ranks is 30,000 words of each: 600,000 words, ten intervals an epoch."""
    text = " ".join(" ".join(cell.source for cell in rules.cells(rules.path_of("25"))).split())
    alone, both = speeds_of_25()
    ms, ms_of_two = 30 / alone, 3e3 / both / 50
    assert f"600,000 words | {alone} | {both} | 30,000 |" in text
    said = f"take {ms:.0f} ms alone, so they have {2 * ms:.0f} ms; they took {ms_of_two:.0f} ({3 / both:.1f} s / 50"
    assert said in text
    assert f"{ms_of_two - ms:.0f} ms of this run ({ms_of_two:.0f} - {ms:.0f})" in text


def test_the_plans_have_the_minutes_of_the_lessons():
    plans = re.findall(r"(\d\d(?:, \d\d)+) \((\d+) minutes\)", PLANS)
    assert len(plans) == 3
    for lessons, total in plans:
        assert sum(int(MINUTES[lesson]) for lesson in lessons.split(", ")) == int(total), lessons


def needs(lesson):
    """The lessons that a header asks for; those that only help, or are for a part, are left out."""
    asked = rules.cells(rules.path_of(lesson))[0].source.partition("**You need**")[2].partition("**It takes you**")[0]
    sentences = re.split(r"[.;]\s|, and for the second evening", asked)
    return {found for one in sentences if " helps" not in one for found in re.findall(r"\]\((\d\d)_", one)}


def test_the_semester_has_the_minutes_and_gives_each_lesson_what_it_needs():
    weeks = re.findall(r"\| (\d+) \| (\d\d), (\d\d) \| (\d+) \|", PLANS)
    assert [int(week) for week, *_ in weeks] == list(range(1, 15))
    done = set()
    for _, *lessons, total in weeks:
        assert sum(int(MINUTES[lesson]) for lesson in lessons) == int(total), lessons
        for lesson in lessons:
            assert needs(lesson) <= done, lesson
            done.add(lesson)


def test_the_figure_of_the_start_page_is_that_of_the_record(tmp_path, monkeypatch):
    (tmp_path / "figures").mkdir()
    monkeypatch.setattr(where_it_arrives, "ROOT", tmp_path)
    where_it_arrives.draw()
    drawn = (tmp_path / "figures" / "where_it_arrives.svg").read_text()
    assert drawn == (ROOT / "figures" / "where_it_arrives.svg").read_text()
    rows = json.loads(where_it_arrives.RECORD.read_text())
    assert drawn.count("<rect") == 1 + sum(row["system"] in where_it_arrives.SYSTEMS for row in rows)
