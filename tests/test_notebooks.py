"""The lessons, README.md and docs/ keep the rules of notebook_rules.py, and each rule notices a broken notebook."""

import ast
import base64
import inspect
import re
import shutil
from pathlib import Path

import nbformat
import notebook_rules as rules
import pytest
import run_notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.text.skipgram import subsample

NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
LESSONS = rules.ROOT / "docs" / "lessons.md"
PAGES = sorted([*rules.ROOT.glob("*.md"), *rules.ROOT.glob("docs/*.md"), *rules.ROOT.glob("laptop_cluster/*.md")])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_notebook_keeps(rule, path):
    complaints = rule(path)
    assert not complaints, "\n  ".join(["", *complaints])


def test_the_table_has_a_row_for_every_lesson_with_the_times_and_memory_of_its_header(tmp_path):
    """As `run_notebooks.py --table` writes them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "notebooks").symlink_to(rules.ROOT / "notebooks")
    page = Path(shutil.copy(LESSONS, tmp_path / "docs"))
    run_notebooks.fill_table(page)
    assert page.read_text() == LESSONS.read_text()
    rows = re.findall(r"^\| \[[^]]*\]\(\.\./notebooks/([^)]+)\) \|", page.read_text(), re.MULTILINE)
    assert rows == [path.name for path in NOTEBOOKS]


def test_each_header_names_the_part_under_which_the_table_has_its_lesson():
    assert LESSONS.read_text().count("| **") > 5 and rules.parts(LESSONS) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages_lead_to_files(page):
    assert rules.page_links(page, rules.ROOT) == []


def test_the_readme_links_every_lesson_and_every_page():
    readme = (rules.ROOT / "README.md").read_text()
    linked = [*NOTEBOOKS, *rules.ROOT.glob("docs/*.md")]
    assert [path.name for path in linked if f"/{path.name})" not in readme] == []


def test_the_pictures_of_the_readme_are_outputs_of_notebooks_or_of_a_command():
    drawn = (rules.ROOT / "Makefile").read_text() + (rules.ROOT / "tools" / "screenshots.py").read_text()
    pictures = {
        output.data["image/png"].replace("\n", "")
        for path in NOTEBOOKS
        for cell in rules.cells(path, "code")
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    }
    for figure in (rules.ROOT / "figures").glob("*.png"):
        if f"--figure figures/{figure.name}" in drawn or f'"{figure.name}"' in drawn:
            continue
        assert base64.b64encode(figure.read_bytes()).decode() in pictures, f"make {figure.name} anew from its notebook"


# ---- a notebook that keeps every rule, and one that is broken for each


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


((_, SUBSAMPLE),) = rules.definitions(ast.parse(inspect.getsource(subsample)))  # its code, without the docstring
CELLS = {
    "title": (
        "# 90 · Doubling\n\n**It takes you** about 50 minutes, with the exercises.\n\n"
        "**It takes the machine** about 1 min 20 s on 2 cores, and 2.0 GB of memory."
    ),
    "connect": "from helpers.cluster import connect\n\nranks = connect(2)",
    "shown": "%%px --local\n" + SUBSAMPLE,  # a definition of helpers, here and on the ranks
    "px": "%%px\nx = 1\nprint(x)",
    "plot": "%matplotlib inline\ny = [1, 2]\nassert max(y) == 2",
    "prompt": (
        "**What do you expect?** Is 2 even?\n\n<details><summary>a) Yes</summary>\n\nRight.\n</details>\n"
        "<details><summary>b) No</summary>\n\nNo.\n</details>"
    ),
    "stub": "def double(x):\n    raise NotImplementedError\n\n\n_ = check(double)",
    "solution": "<details>\n\n```python\ndef double(x):\n    return 2 * x\n```\n\n</details>",
    "next": "Next: [more](91_more.ipynb), [home](../README.md), [here](#doubling)",
    "close": "ranks.close()",
}
OUTPUTS = {
    "px": printed("[stdout:0] 1\n"),
    "plot": new_output("display_data", data={"image/png": "iVBO", "text/plain": "<Figure>" + "-" * 90}),
    "stub": printed("not yet: double(3) is 6\n"),
}


def good_notebook():
    notebook = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for name, text in CELLS.items():
        if name in ("title", "prompt", "solution", "next"):
            cell = new_markdown_cell(text, id=name)
        else:
            count = 1 + sum(cell.cell_type == "code" for cell in notebook.cells)
            outputs = [OUTPUTS[name]] if name in OUTPUTS else []
            cell = new_code_cell(text, id=name, execution_count=count, outputs=outputs)
        notebook.cells.append(cell)
    find(notebook, "plot").metadata.tags = ["nbval-ignore-output"]
    return notebook


def find(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


@pytest.fixture
def save(tmp_path, monkeypatch):
    """A function that writes a notebook into a small repository."""
    monkeypatch.setitem(rules.SHOWN, "90", "subsample")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("a toy")
    row = "| [toy](../notebooks/90_toy.ipynb) | 50 min | 1 min 20 s | 2.0 GB |\n"
    (tmp_path / "docs" / "lessons.md").write_text(row)
    (tmp_path / "notebooks" / "91_more.ipynb").write_text("{}")

    def save(notebook):
        path = tmp_path / "notebooks" / "90_toy.ipynb"
        nbformat.write(notebook, path)
        return path

    return save


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_keeps(rule, save):
    assert rule(save(good_notebook())) == []


def source(name, text):
    """A way to break a notebook: the cell gets another source."""
    return lambda notebook: find(notebook, name).update(source=text)


def output(name, text, stream="stdout"):
    return lambda notebook: find(notebook, name).update(outputs=[printed(text, stream)])


BROKEN = [
    (rules.file_format, "not python3", lambda notebook: notebook.metadata.kernelspec.update(name="julia")),
    (rules.header, "two lessons", source("title", CELLS["title"].replace("50", "150"))),
    (rules.header, "the machine", source("title", "# 90 · Doubling")),
    (rules.executed, "9, should be 1", lambda notebook: find(notebook, "connect").update(execution_count=9)),
    (rules.executed, "stderr", output("px", "a warning", "stderr")),
    (rules.ignored_outputs, "nothing asserted", source("plot", "assert True")),
    (rules.no_leaks, "absolute path", output("px", "saved '/home/me/x'")),
    (rules.no_leaks, "an address", output("px", "<History at 0x7fb2a57ea8d0>")),
    (rules.widths, "a line of output with 81", output("px", "x" * 81)),
    (rules.magics, "'autopx'", source("plot", "%autopx")),
    (rules.magics, "below the first line", source("px", "# on each rank\n%%px\nassert x")),
    (rules.literals, "2.5 times", source("plot", "print('2.5 times')")),
    (rules.closes, "closes nothing", source("close", "print('done')")),
    (rules.copies, "not the same", source("shown", CELLS["shown"].replace("rng.random", "rng.normal"))),
    (rules.copies, "does not stand", source("shown", "%%px\nx = 2")),
    (rules.copies, "shard is also in", source("px", "%%px\ndef shard(ids):\n    return ids")),
    (rules.defined_once, "imports subsample", source("px", "%%px\nfrom helpers.text import subsample")),
    (rules.solutions, "<details>", source("solution", "return 2 * x")),
    (rules.choices, "no folded choices", source("prompt", "**What do you expect** of 2?")),
    (rules.choices, "choices a), b)", source("prompt", CELLS["prompt"].replace("b) ", "a) "))),
    (rules.folded, "of its own", source("prompt", CELLS["prompt"].replace("No.\n", "No. "))),
    (rules.links, "04_less.ipynb", source("next", "Next: [more](04_less.ipynb)")),
    (rules.links, "registry", source("next", "from https://registry.example.org/simple")),
]


@pytest.mark.parametrize(("rule", "phrase", "spoil"), BROKEN, ids=[f"{row[0].__name__}-{row[1]}" for row in BROKEN])
def test_a_rule_complains_of_a_broken_notebook(rule, phrase, spoil, save):
    notebook = good_notebook()
    spoil(notebook)
    complaints = rule(save(notebook))
    assert phrase in "\n".join(complaints)
    assert all("90_toy.ipynb" in complaint for complaint in complaints)


def test_a_copy_may_differ_in_docstring_and_comments(save):
    notebook = good_notebook()
    head, _, body = CELLS["shown"].partition(":\n")
    source("shown", f'{head}:  # here\n    """In other words."""\n{body}')(notebook)
    assert rules.copies(save(notebook)) == []


def test_the_host_name_is_a_leak(save):
    notebook = good_notebook()
    output("px", "rank 0 on anna-laptop\n")(notebook)
    assert "the host name" in rules.no_leaks(save(notebook), host="anna-laptop")[0]
    assert rules.no_leaks(save(notebook), host="anna") == []


def test_the_rule_of_links_complains_of_a_page(save, tmp_path):
    page = tmp_path / "docs" / "lessons.md"
    save(good_notebook())
    assert rules.page_links(page, tmp_path) == []
    page.write_text("[toy](../notebooks/90_toy.ipynb)\n![picture](a.png)\n")
    assert "a.png" in rules.page_links(page, tmp_path)[0]


def test_the_rule_of_parts_complains(save, tmp_path):
    page = tmp_path / "docs" / "lessons.md"
    save(good_notebook())
    page.write_text("| **Toys** | | | | |\n| [toy](../notebooks/90_toy.ipynb) | 50 min | 3 s | 2.0 GB |\n")
    assert rules.parts(page) == ["90_toy.ipynb: its header does not say *Part 1, Toys*"]
