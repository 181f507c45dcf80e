"""Two pages of the book that are made of what is there: the boxes of the lessons, and the mistakes of the exercises."""

import json
import re
from pathlib import Path

from exercises import exercises_of, lessons

BOX = re.compile(r"(?:^>.*\n?)+", re.MULTILINE)
BEGINNING = "**You may have read**"


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
        "Calls and sentences of articles and documentation that are wrong, obsolete or easily misunderstood. Each is",
        "taken from a box of the lesson that it links to, where the rest stands. \"The article\" is introduced in",
        "lesson 02, \"the guide\" in lesson 10.",
    ]
    for path in sorted(notebooks.glob("*.ipynb")):
        boxes = boxes_of(path)
        if boxes:
            lines += ["", f"## [{heading(path)}](../notebooks/{path.name})", ""]
            lines += [f"- {box}" for box in boxes]
    return "\n".join(lines) + "\n"


def boxes_of(path):
    """What each box "You may have read" of a lesson says, in one line, without the words that it begins with."""
    found = []
    for text in texts(path):
        for box in BOX.findall(text):
            line = " ".join(row.lstrip("> ") for row in box.splitlines() if row.strip("> "))
            if line.startswith(BEGINNING):
                line = line.removeprefix(BEGINNING).lstrip(" ,:")
                found.append(re.sub(r"\]\((\d\d_\w+\.ipynb)", r"](../notebooks/\1", line))
    return found


def mistakes_page(notebooks):
    lines = [
        "# Known mistakes",
        "",
        "For instructors: the wrong answers to the exercises that `check` recognises, as the hint that each gets.",
    ]
    for lesson in lessons():
        path = notebooks / f"{lesson.removeprefix('ex')}.ipynb"
        rows = []
        for name, exercise in exercises_of(lesson).items():
            hints = [mistake.hint for case in exercise.cases for mistake in case.mistakes]
            rows += [f"| `{name}` | {hint.replace('|', chr(92) + '|')} |" for hint in hints]
        if rows and path.exists():
            lines += ["", f"## [{heading(path)}](../notebooks/{path.name})", ""]
            lines += ["| exercise | hint |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def texts(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def heading(path):
    return texts(path)[0].partition("\n")[0].removeprefix("# ")
