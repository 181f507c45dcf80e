"""Each rule of lesson_rules.py passes a good lesson and notices a bad one."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import lesson_rules as rules
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parent.parent
tool = importlib.util.spec_from_file_location("run_notebooks", ROOT / "tools" / "run_notebooks.py")
run_notebooks = importlib.util.module_from_spec(tool)
tool.loader.exec_module(run_notebooks)
HEADER = """# 05 · Doubling

**You will be able to** double a number on two ranks.

**You need** [00](00_start_here.ipynb).

**It takes** about 1 min 20 s on 2 cores, and 2.0 GB of memory."""
EXERCISE = "def double(ranks, x):\n    raise NotImplementedError\n\n\n_ = check(double)"
SOLUTION = "<details>\n\n```python\ndef double(ranks, x):\n    return 2 * x\n```\n</details>"


def printed(text):
    return [new_output("stream", name="stdout", text=text)]


def good_lesson():
    return {
        "header": new_markdown_cell(HEADER),
        "question": new_markdown_cell("What is twice a number? Two ranks find out.\n\n```\nrank 0 --> rank 1\n```"),
        "imports": new_code_cell("from helpers.cluster import connect\nranks = connect(2)"),
        "first": new_markdown_cell("## Doubling\n\n**What do you expect?** More than before."),
        "define": new_code_cell("%%px --local\ndef twice(x):\n    return 2 * x"),
        "run": new_code_cell("four = twice(2)\nprint(f'{four:.1f}')", outputs=printed("4.0\n")),
        "task": new_markdown_cell("**Exercise.** Double it."),
        "inner": new_code_cell(EXERCISE),
        "answer": new_markdown_cell(SOLUTION),
        "away": new_markdown_cell("## What to take away"),
        "numbers": new_code_cell("assert four == 4"),
        "when": new_markdown_cell("## When to use it\n\nWhen you need twice as much."),
        "exercises": new_markdown_cell("## Exercises\n\n**2.** Start four ranks."),
        "outer": new_code_cell(EXERCISE.replace("ranks, ", "")),
        "solved": new_markdown_cell(SOLUTION),
        "read": new_markdown_cell("## Read on\n\n- Adam, 1900\n- Eve, 1901\n\nNext: [06](06_more.ipynb)"),
        "close": new_code_cell("ranks.close()"),
    }


def save(lesson, folder):
    (folder / "06_more.ipynb").write_text("{}")
    nbformat.write(new_notebook(cells=list(lesson.values())), folder / "05_toy.ipynb")
    return folder / "05_toy.ipynb"


@pytest.mark.parametrize("rule", rules.STYLE, ids=lambda rule: rule.__name__)
def test_a_good_lesson_keeps(rule, tmp_path):
    assert rule(save(good_lesson(), tmp_path)) == []


def source(name, text):
    return lambda lesson: lesson[name].update(source=text)


def replace(name, old, new):
    def spoil(lesson):
        assert old in lesson[name].source
        lesson[name].source = lesson[name].source.replace(old, new)

    return spoil


def without(*names):
    return lambda lesson: [lesson.pop(name) for name in names]


SPOILT = [
    (rules.opening, "with its number", replace("header", "# 05", "# 06")),
    (rules.opening, "with its number", replace("header", "# 05 · D", "# D")),
    (rules.opening, "able to", replace("header", "**You will be able to**", "You will")),
    (rules.opening, "You need", replace("header", "**You need**", "Known is")),
    (rules.opening, "It takes", replace("header", "2.0 GB", "much")),
    (rules.opening, "It takes", replace("header", "about 1 min 20 s", "about a minute")),
    (rules.question, "no question", replace("question", "?", ".")),
    (rules.question, "no schematic", replace("question", "```", "")),
    (rules.closing, "the last sections", replace("away", "What to take away", "Recap")),
    (rules.closing, "the last sections", without("when")),
    (rules.closing, "the last sections", replace("read", "Read on", "Next")),
    (rules.closing, "named recap", replace("first", "Doubling", "A recap")),
    (rules.closing, "no link to 06_more.ipynb", replace("read", "06_more", "07_more")),
    (rules.closing, "fewer than 2", replace("read", "- Eve, 1901", "")),
    (rules.closing, "no code cell under What to take away", without("numbers")),
    (rules.closing, "does not close", source("close", "print('done')")),
    (rules.expectation, "no **What do you expect", replace("first", "expect?", "think?")),
    (rules.expectation, "no code cell follows", replace("exercises", "**2.**", "**What do you expect?**\n")),
    (rules.widths, "line of code with 81", source("run", "x = " + "1" * 77)),
    (rules.widths, "line of output with 90", lambda lesson: lesson["run"].update(outputs=printed("x" * 90))),
    (rules.literals, "2.5 times", source("run", "print('2.5 times')")),
    (rules.literals, "12 %", source("run", "%%px\nprint(x, 'that is 12 %')")),
    (rules.literals, "3x", source("run", "print(f'3x as fast')")),
    (rules.exercise_places, "no section", replace("exercises", "## Exercises", "")),
    (rules.exercise_places, "within the text", without("inner")),
    (rules.exercise_places, "under Exercises", without("outer")),
    (rules.exercise_places, "running cluster", lambda lesson: [
        replace("exercises", "ranks", "times")(lesson), without("inner")(lesson),
        replace("solved", "ranks, ", "")(lesson)]),
    (rules.defined_once, "imports twice", source("run", "%%px\nfrom helpers.text import twice")),
    (rules.defined_once, "imports connect", source("define", "def connect(n):\n    return n")),
]  # fmt: skip
NAMES = [f"{rule.__name__}-{phrase}" for rule, phrase, _ in SPOILT]


@pytest.mark.parametrize(("rule", "phrase", "spoil"), SPOILT, ids=NAMES)
def test_rule_complains(rule, phrase, spoil, tmp_path):
    lesson = good_lesson()
    if phrase == "no code cell follows":
        lesson = {name: cell for name, cell in lesson.items() if name != "outer"}
    spoil(lesson)
    assert phrase in "\n".join(rule(save(lesson, tmp_path)))


def test_every_rule_has_a_counter_example():
    assert {rule for rule, _, _ in SPOILT} == set(rules.STYLE)


def test_two_sections_may_share_a_cell(tmp_path):
    lesson = good_lesson()
    lesson["when"].source += "\n\n" + lesson.pop("exercises").source
    path = save(lesson, tmp_path)
    assert [complaint for rule in rules.STYLE for complaint in rule(path)] == []


def test_wide_reprs_of_figures_and_tables_are_no_printed_lines(tmp_path):
    lesson = good_lesson()
    lesson["run"].outputs = [new_output("display_data", data={"text/plain": "x" * 90, "text/markdown": "| x |"})]
    assert rules.widths(save(lesson, tmp_path)) == []


def test_the_readme_says_what_the_headers_say(tmp_path):
    notebooks = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if rules.in_new_style(path)]
    assert rules.readme_agrees(ROOT / "README.md", notebooks) == []


def test_a_table_filled_from_the_headers_agrees_with_them(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path, readme = save(good_lesson(), tmp_path / "notebooks"), tmp_path / "README.md"
    readme.write_text("# Toy\n\n| [5 a](notebooks/05_toy.ipynb) | doubling | 3 s | 9.9 GB |\n| else | x |\n")
    assert len(rules.readme_agrees(readme, [path])) == 1
    run_notebooks.fill_table(readme)
    assert "| [5 a](notebooks/05_toy.ipynb) | doubling | 1 min 20 s | 2.0 GB |\n| else | x |\n" in readme.read_text()
    assert rules.readme_agrees(readme, [path]) == []
    run_notebooks.write_header(path, seconds=116.2, memory=1.21e9)
    run_notebooks.fill_table(readme)
    assert run_notebooks.takes(path) == ("2 min", "1.3 GB")
    assert rules.readme_agrees(readme, [path]) == rules.opening(path) == []


def test_memory_is_that_of_all_processes_together():
    program = "import sys, time; block = bytearray(200_000_000); print(1, flush=True); time.sleep(60)"
    with run_notebooks.Memory() as memory:
        children = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
        for child in children:
            child.stdout.readline()
        deadline = time.monotonic() + 30
        while memory.peak < 400_000_000 and time.monotonic() < deadline:
            time.sleep(0.1)
        for child in children:
            child.kill()
            child.communicate()
    assert 400_000_000 < memory.peak < 500_000_000
