"""The reader's own notebooks: which exercises are done, and a lesson as it was before it was edited.

    python tools/my_lessons.py progress        (make progress)
    python tools/my_lessons.py fresh 07        (make fresh LESSON=07)

Progress runs nothing: it reads what `check` printed when the reader last ran and saved the lesson.
"""

import argparse
import ast
import json
import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from exercises import exercises_of, lessons
from exercises.checking import UNTOUCHED

ROOT = Path(__file__).resolve().parent.parent
MINE = "mine"  # in notebooks/: what `fresh` put aside; neither tested nor committed


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("progress", help="the exercises of each lesson: not tried, wrong with the hint, right")
    fresh = commands.add_parser("fresh", help="give a lesson back as it was; your copy goes to notebooks/mine")
    fresh.add_argument("lesson", help="its number, such as 07")
    arguments = parser.parse_args()
    if arguments.command == "progress":
        print_progress(ROOT / "notebooks")
    else:
        print(give_back(ROOT, arguments.lesson))


# ---- progress


def print_progress(notebooks):
    right = total = 0
    for lesson in lessons():
        path = notebooks / f"{lesson.removeprefix('ex')}.ipynb"
        if not path.exists():
            print(f"{path.stem}: not here")
            continue
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        except (ValueError, KeyError):
            print(f"{path.stem}: cannot be read as a notebook; make fresh LESSON={path.name[:2]} gives it back")
            continue
        print(path.stem)
        for name in exercises_of(lesson):
            state = state_of(name, cells)
            right += state == "right"
            total += 1
            print(textwrap.fill(f"{name}: {state}", 100, initial_indent="    ", subsequent_indent="        "))
    print(f"{right} of {total} right, as your notebooks were last saved")


def state_of(name, cells):
    """What the saved output of the cell that defines `name` says: "right", "wrong: " and the hint, or "not tried"."""
    said = ""
    for cell in cells:
        if cell["cell_type"] == "code" and name in functions("".join(cell["source"])):
            outputs = [output for output in cell["outputs"] if output.get("name") == "stdout"]
            said = "".join("".join(output["text"]) for output in outputs) or said
    said = " ".join(said.split())
    if said.startswith("correct"):
        return "right"
    hint = said.partition("not yet: ")[2]
    return f"wrong: {hint}" if hint and not hint.startswith(UNTOUCHED) else "not tried"


def functions(source):
    """The names of the functions that a cell defines; none where the reader's text is no Python."""
    try:
        module = ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:
        return []
    return [node.name for node in module.body if isinstance(node, ast.FunctionDef)]


# ---- fresh


def give_back(root, number):
    """Write the lesson of the last commit, and put the reader's copy aside. Returns what to print."""
    listed = git(root, "ls-tree", "--name-only", "HEAD", "notebooks/").decode().split()
    found = [name for name in listed if Path(name).name.startswith(f"{number}_")]
    if len(found) != 1:
        sys.exit(f"There is no lesson {number!r}: give its two digits, as in make fresh LESSON=07.")
    path = root / found[0]
    committed = git(root, "show", f"HEAD:{found[0]}")
    if path.exists() and path.read_bytes() == committed:
        return f"{path.name} is as it was."
    said = f"{path.name} is as it was"
    if path.exists():
        aside = path.parent / MINE / f"{path.stem}_{datetime.now():%Y-%m-%d_%H-%M-%S}.ipynb"
        aside.parent.mkdir(exist_ok=True)
        path.rename(aside)
        said += f"; your copy is {aside.relative_to(root)}"
    path.write_bytes(committed)
    return said + "."


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True)
    if done.returncode:
        reason = done.stderr.decode().strip().splitlines()[-1:]
        sys.exit(f"A lesson comes back from the repository, and git says: {' '.join(reason)}")
    return done.stdout


if __name__ == "__main__":
    main()
