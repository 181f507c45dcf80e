"""The notebooks and README.md keep the rules of notebook_rules.py, and each rule notices a wrong notebook."""

import base64
import inspect

import lesson_rules
import nbformat
import notebook_rules as rules
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers import exercises
from helpers.text.skipgram import subsample

NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
README = rules.ROOT / "README.md"
TOY_EXERCISE = "double: {notebook: '90', cases: [{args: [3], answer: 6, hint: double(3) is 6}]}"
SOLUTION = """
<details><summary>Solution</summary>

```python
def double(x):
    return 2 * x
```

</details>
"""
STUB = "def double(x):\n    return None\n\n\n_ = check(double)"
IMPORTS = "from helpers.cluster import connect\nfrom helpers.exercises import check\n\n"
A_PNG = {"image/png": base64.b64encode(b"not drawn").decode(), "text/plain": "<Figure>"}


def test_there_are_notebooks():
    assert NOTEBOOKS, f"no notebook in {rules.ROOT / 'notebooks'}"


KEPT = [
    pytest.param(rule, path, id=f"{rule.__module__}.{rule.__name__}-{path.stem}")
    for rule in (*rules.RULES, *lesson_rules.STYLE)
    for path in NOTEBOOKS
]


@pytest.mark.parametrize(("rule", "path"), KEPT)
def test_notebook_keeps(rule, path):
    complaints = rule(path)
    assert not complaints, "\n  ".join(["", *complaints])


def test_readme_has_a_row_for_every_notebook():
    assert rules.readme_rows(README, NOTEBOOKS) == []


def test_readme_links_lead_to_files():
    assert rules.readme_links(README) == []


# ---- a notebook that keeps every rule, and what each rule says when it is spoilt


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def code(id, source, *outputs, tags=()):
    return new_code_cell(source, id=id, outputs=list(outputs), metadata={"tags": list(tags)} if tags else {})


def markdown(id, source):
    return new_markdown_cell(source, id=id)


def good_notebook():
    notebook = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    notebook.cells = [
        markdown("title", "# Doubling\n\nYou will be able to double, in 20 seconds and 0.1 GB."),
        code("connect", IMPORTS + "ranks = connect(2)"),
        code("px", "%%px\nx = 1", printed("[stdout:0] 1\n")),
        code("check", "assert ranks.view['x'] == [1, 1]"),
        markdown("alt", "The plot shows that a line rises. [Home](../README.md), [anchor](#doubling)"),
        code("plot", "%matplotlib inline\ny = [1, 2]\nassert max(y) == 2", tags=["nbval-ignore-output"]),
        markdown("recap", "## Recap"),
        code("numbers", "print(2 * 2)", printed("4\n")),
        markdown("exercises", "## Exercises"),
        code("stub", STUB, printed("not yet: double(3) is 6\n")),
        markdown("solution", SOLUTION),
        markdown("next", "Next: [more](91_more.ipynb)"),
        code("close", "ranks.close()"),
    ]
    notebook.cells[5].outputs = [new_output("display_data", data=A_PNG)]
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
    return notebook


def find(notebook, id):
    return next(cell for cell in notebook.cells if cell.id == id)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small repository: the folder of its notebooks, with 91_more.ipynb, and an exercise."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "README.md").write_text("# Toy\n")
    (folder / "91_more.ipynb").write_text("{}")
    (tmp_path / "toy.yaml").write_text(TOY_EXERCISE)
    monkeypatch.setattr(exercises, "TABLE", tmp_path / "toy.yaml")
    return folder


def save(notebook, path):
    nbformat.write(notebook, path)
    return path


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_good_notebook_keeps(rule, folder):
    assert rule(save(good_notebook(), folder / "90_toy.ipynb")) == []


def source(id, text):
    """A way to spoil a notebook: the cell gets another source."""
    return lambda notebook: find(notebook, id).update(source=text)


def output(id, *outputs):
    return lambda notebook: find(notebook, id).update(outputs=list(outputs))


def tag(id, *tags):
    return lambda notebook: find(notebook, id).metadata.update(tags=list(tags))


def shown(kind, value):
    return new_output("display_data", data={kind: value})


def add_code(number, text="1"):
    return lambda notebook: notebook.cells.extend(new_code_cell(text) for _ in range(number))


NO_ASSERT = "nothing asserted here"
SPOILT = [
    (rules.file_format, "not nbformat 4.5", lambda notebook: notebook.update(nbformat_minor=6)),
    (rules.file_format, "not python3", lambda notebook: notebook.metadata.kernelspec.update(name="julia")),
    (rules.file_format, "widgets", lambda notebook: notebook.metadata.update(widgets={"application/x": {}})),
    (rules.file_format, "widgets", output("px", shown("application/vnd.jupyter.widget-view+json", {}))),
    (rules.file_format, "1 MB", output("px", printed("4" * 1_000_000))),
    (rules.cell_sizes, "31 lines", source("check", "x = 1\n\n" * 31)),
    (rules.cell_sizes, "41 code cells", add_code(34)),
    (rules.cell_sizes, "median of 7", add_code(8, "x = 1\n" * 7)),
    (rules.executed, "count None", lambda notebook: find(notebook, "check").update(execution_count=None)),
    (rules.executed, "9, should be 3", lambda notebook: find(notebook, "check").update(execution_count=9)),
    (rules.executed, "an error", output("check", new_output("error", ename="E", evalue="", traceback=[]))),
    (rules.executed, "stderr", output("check", printed("a warning", "stderr"))),
    (rules.executed, "stderr", output("px", printed("[stderr:1] a warning"))),
    (rules.compared_outputs, "2 of 7", tag("check", "nbval-ignore-output")),
    (rules.compared_outputs, NO_ASSERT, source("plot", "y = [1, 2]")),
    (rules.compared_outputs, NO_ASSERT, source("plot", "assert True")),
    (rules.compared_outputs, "nbval-skip", tag("check", "nbval-skip")),
    (rules.compared_outputs, "nbval comments", source("check", "# NBVAL_SKIP\nassert x")),
    (rules.compared_outputs, "no longer raises", tag("plot", "nbval-ignore-output", "raises-exception")),
    (rules.no_leaks, "absolute path", output("px", printed("saved '/home/me/x'"))),
    (rules.no_leaks, "absolute path", output("px", shown("text/html", "<b>/tmp/x</b>"))),
    (rules.no_leaks, "this repository", output("px", printed(f"in {rules.ROOT}"))),
    (rules.no_leaks, "token", output("px", printed("http://127.0.0.1:8888/lab?token=1"))),
    (rules.figures, "not PNG", output("plot", shown("image/svg+xml", "<svg/>"))),
    (rules.figures, "HTML with ids", output("px", shown("text/html", '<table id="T_3f2a">'))),
    (rules.figures, "does not say", source("alt", "A line, see map-reduce.")),
    (rules.px_cells, "below the first line", source("px", "# on each rank\n%%px\nassert x")),
    (rules.px_cells, NO_ASSERT, lambda notebook: [source(id, "x")(notebook) for id in ("check", "plot")]),
    (rules.magics, "'html'", source("check", "%%html\n<b>")),
    (rules.magics, "'autopx'", source("check", "%autopx")),
    (rules.magics, "'pip'", source("check", "%pip install x")),
    (rules.magics, "'system'", source("px", "%%px\n!ls")),
    (rules.magics, "'getoutput'", source("check", "x = !ls")),
    (rules.links, "04_less.ipynb", source("next", "Next: [more](04_less.ipynb)")),
    (rules.links, "x.png", source("next", '<img src="x.png">')),
    (rules.links, "/etc/hosts", source("next", "[a file](/etc/hosts)")),
    (rules.links, "registry", source("next", "from https://registry.example.org/simple")),
    (rules.exercises, "0 exercises", source("stub", "double = None")),
    (rules.exercises, "`not yet: ...`", output("stub", printed("correct\n"))),
    (rules.exercises, "<details>", source("solution", "```python\ndef double(x):\n    return 2 * x\n```\n")),
    (rules.exercises, "<details>", source("solution", "<details>\nreturn twice the number\n</details>")),
    (rules.solutions, "does not accept", source("solution", SOLUTION.replace("2 * x", "x"))),
    (rules.copies, "shard is also in", source("check", "def shard(ids, rank, size):\n    return ids")),
    (rules.copies, "shard is also in", source("px", "%%px\ndef shard(ids):\n    return ids")),
]
NAMES = [f"{rule.__name__}-{phrase}" for rule, phrase, _ in SPOILT]


@pytest.mark.parametrize(("rule", "phrase", "spoil"), SPOILT, ids=NAMES)
def test_rule_complains(rule, phrase, spoil, folder):
    notebook = good_notebook()
    spoil(notebook)
    complaints = rule(save(notebook, folder / "90_toy.ipynb"))
    assert phrase in "\n".join(complaints)
    assert all("90_toy.ipynb" in complaint for complaint in complaints)


def test_every_rule_has_a_counter_example():
    assert {rule for rule, _, _ in SPOILT} == set(rules.RULES)


def test_cell_without_id(folder):
    path = save(good_notebook(), folder / "90_toy.ipynb")
    path.write_text(path.read_text().replace('"id": "px",', ""))
    assert "without an id" in rules.file_format(path)[0]


def test_invalid_notebook(folder):
    path = save(good_notebook(), folder / "90_toy.ipynb")
    path.write_text(path.read_text().replace('"cell_type": "code"', '"cell_type": "program"', 1))
    with pytest.raises(nbformat.ValidationError, match="program"):
        rules.file_format(path)


def test_announced_error_is_none(folder):
    notebook = good_notebook()
    error = new_output("error", ename="ValueError", evalue="", traceback=[])
    find(notebook, "check").update(outputs=[error, printed("a warning", "stderr")])
    tag("check", "raises-exception")(notebook)
    assert rules.executed(save(notebook, folder / "90_toy.ipynb")) == []


def test_host_name_in_an_output(folder):
    notebook = good_notebook()
    output("px", printed("rank 0 on anna-laptop, the docs\n"))(notebook)
    source("alt", "The plot of docs")(notebook)
    path = save(notebook, folder / "90_toy.ipynb")
    assert "the host name" in rules.no_leaks(path, host="anna-laptop")[0]
    for other in ("anna", "laptop", "on", "docs"):  # part of another word; too short; a word of the notebook
        assert rules.no_leaks(path, host=other) == []


def test_numbered_notebooks_need_their_exercises_and_code(folder):
    path = save(good_notebook(), folder / "02_toy.ipynb")
    assert rules.exercises(path) == ["02_toy.ipynb: 1 exercises, at least 2"]
    missing = {complaint.split()[1] for complaint in rules.copies(path)}
    assert missing == {name for names in rules.STANDS_IN["02"].values() for name in names.split()}


def test_a_copy_may_differ_in_docstring_and_comments_and_in_nothing_else(folder, monkeypatch):
    monkeypatch.setitem(rules.STANDS_IN, "90", {"helpers.text.skipgram": "subsample"})
    original = inspect.getsource(subsample)
    other = original.replace(subsample.__doc__, "In other words.").replace("keep[ids]]", "keep[ids]]  # here")
    assert "In other words" in other and "# here" in other
    notebook = good_notebook()
    source("check", other)(notebook)
    assert rules.copies(save(notebook, folder / "90_toy.ipynb")) == []
    source("check", other.replace("keep[ids]]", "keep[ids] ]").replace("<", "<="))(notebook)
    assert "not the same as in helpers.text.skipgram" in rules.copies(save(notebook, folder / "90_toy.ipynb"))[0]


def test_a_copy_is_that_of_one_module_and_benchmarks_count(folder, monkeypatch):
    notebook = good_notebook()
    source("check", inspect.getsource(subsample))(notebook)
    monkeypatch.setitem(rules.STANDS_IN, "90", {"benchmarks.losses": "subsample"})  # equal by name, and not there
    assert "not the same as in benchmarks.losses" in rules.copies(save(notebook, folder / "90_toy.ipynb"))[0]
    monkeypatch.setitem(rules.STANDS_IN, "90", {"benchmarks.losses": "make_loss"})
    source("check", "def make_loss(name):\n    return name")(notebook)
    assert "not the same as in benchmarks.losses" in rules.copies(save(notebook, folder / "90_toy.ipynb"))[0]


def test_readme_rules_complain(tmp_path):
    readme, notebook = tmp_path / "README.md", tmp_path / "notebooks" / "01_a.ipynb"
    notebook.parent.mkdir()
    notebook.touch()
    readme.write_text("| [a](notebooks/01_a.ipynb) | 1 minute |\n\n`[not](a-link)`\n")
    assert rules.readme_rows(readme, [notebook]) == rules.readme_links(readme) == []
    readme.write_text("[a](notebooks/01_a.ipynb)\n![picture](docs/a.png)\n")
    assert rules.readme_rows(readme, [notebook]) == ["README: no row of a table links notebooks/01_a.ipynb"]
    assert "docs/a.png" in rules.readme_links(readme)[0]


def test_the_pictures_of_the_readme_are_outputs_of_notebooks_or_of_a_command():
    drawn = (rules.ROOT / "Makefile").read_text() + (rules.ROOT / "tools" / "screenshots.py").read_text()
    pictures = {
        output.data["image/png"].replace("\n", "")
        for path in NOTEBOOKS
        for cell in nbformat.read(path, 4).cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    }
    for figure in (rules.ROOT / "figures").glob("*.png"):
        if f"--figure figures/{figure.name}" in drawn or f'shoot(page, "{figure.stem}")' in drawn:
            continue
        assert base64.b64encode(figure.read_bytes()).decode() in pictures, f"make {figure.name} anew from its notebook"
