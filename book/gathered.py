"""Two pages of the book that are made of what is there: the boxes of the lessons, and the mistakes of the exercises."""

import json
import re
import textwrap
from pathlib import Path

from exercises import exercises_of, lessons

BOX = re.compile(r"(?:^>.*\n?)+", re.MULTILINE)
BEGINNING = "**You may have read**"
TASK = re.compile(r"^(?:> )?\*\*(?:Exercise )?\d", re.MULTILINE)  # how the task of an exercise begins
LONGEST = 60  # characters of what a function is called with


def write_pages(app):
    """Write docs/you_may_have_read.md and docs/mistakes.md into the source of the book, before Sphinx reads it."""
    source = Path(app.srcdir)
    if not (source / "docs").is_dir():  # another book that borrows this configuration
        return
    (source / "docs" / "you_may_have_read.md").write_text(boxes_page(source / "notebooks"), encoding="utf-8")
    (source / "docs" / "mistakes.md").write_text(mistakes_page(source / "notebooks"), encoding="utf-8")


def boxes_page(notebooks):
    lines = [
        "# You may have read",
        "",
        "Calls and sentences of articles and documentation that are wrong, obsolete or easily misunderstood: the boxes",
        "of the lessons, whole. What a box speaks of is run in its lesson, mostly in the cells after it. *The article*",
        "explains Horovod's word2vec example for TensorFlow 1 (lesson 02 names it); *the guide* is a long introduction",
        "to Horovod (lesson 10).",
    ]
    for path in sorted(notebooks.glob("*.ipynb")):
        boxes = boxes_of(path)
        if boxes:
            lines += ["", f"## [{heading(path)}](../notebooks/{path.name})", ""]
            lines += ["- " + textwrap.indent(box, "  ").strip() for box in boxes]
    return "\n".join(lines) + "\n"


def boxes_of(path):
    """The boxes "You may have read" of a lesson, whole, with their first words."""
    boxes = [re.sub("^> ?", "", box, flags=re.MULTILINE) for text in texts(path) for box in BOX.findall(text)]
    found = [box.replace(BEGINNING, BEGINNING.strip("*"), 1) for box in boxes if box.startswith(BEGINNING)]
    return [from_docs(box, path) for box in found]


def from_docs(text, path):
    """The Markdown of a lesson with its links as a page in docs/ has them."""
    text = text.replace("](#", f"]({path.name}#")
    return re.sub(r"\]\((\d\d_\w+\.ipynb)", r"](../notebooks/\1", text)


def mistakes_page(notebooks):
    lines = [
        "# Known mistakes",
        "",
        "For instructors, with the right answers: what each exercise asks for, and the wrong answers that `check`",
        "recognises, each with its hint.",
    ]
    for lesson in lessons():
        path = notebooks / f"{lesson.removeprefix('ex')}.ipynb"
        if path.exists():
            found = {name: rows_of(exercise) for name, exercise in exercises_of(lesson).items()}
            known = {name: rows for name, rows in found.items() if rows}
            lines += ["", f"## [{heading(path)}](../notebooks/{path.name})"] if known else []
            for name, rows in known.items():
                lines += ["", f"`{name}`: {task_of(name, path)}", ""]
                lines += ["| called with | right is | hint for another answer |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def rows_of(exercise):
    """A row for each mistake that is known; the first one of a case says also what the case is."""
    rows = []
    for case in exercise.cases:
        if case.mistakes:
            called = ", ".join(map(shown, case.arguments()))
            about = f"{code(called)} | {code(shown(case.answer))}"
        for mistake in case.mistakes:
            hint = mistake.hint.replace("|", "\\|")
            rows.append(f"| {about} | {hint} |")
            about = " | "
    return rows


def shown(value):
    """An argument or an answer on one line."""
    words = " ".join(repr(value).split())
    if " at 0x" in words:
        return type(value).__name__
    return re.sub(r"array\((.*?)(?:, dtype=\w+)?\)", r"\1", words)


def code(words):
    """Words as code in a cell of a table, cut where they are long."""
    words = words if len(words) <= LONGEST else words[:LONGEST] + " …"
    return f"`{words}`".replace("|", "\\|") if words else "nothing"


def task_of(name, path):
    """What the lesson asks for above the cell of an exercise."""
    above = ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and f"def {name}(" in source and f"check({name})" in source:
            break
        above = source if cell["cell_type"] == "markdown" else above
    above = re.sub("<details>.*?</details>|```.*?```", "", above, flags=re.DOTALL)
    begins = [found.start() for found in TASK.finditer(above)]
    task = above[begins[-1] :] if begins else above.strip().rpartition("\n\n")[2]
    blocks = re.split(r"\n\n", re.sub("^> ?", "", task, flags=re.MULTILINE).strip())
    return from_docs(" ".join(" ".join(block.split()) for block in blocks if not block.startswith(("#", "!["))), path)


def texts(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def heading(path):
    return texts(path)[0].partition("\n")[0].removeprefix("# ")
