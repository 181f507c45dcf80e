"""How a notebook teaches, as rules like those of notebook_rules.py: its opening, its end, its exercises, its output."""

import ast
import re

import nbformat
from notebook_rules import called, calls, cells, check_calls, definitions, nearest_prose, tree, without_fences

TAKES = re.compile(
    r"^\*\*It takes\*\* about (?:(\d+) min)? ?(?:(\d+) s)? on 2 cores, and (\d+\.\d) GB of memory", re.MULTILINE
)
HEADER = {
    "a title `# NN · Title` with its number": r"\A# {number} · \S",
    "**You will be able to** ...": r"^\*\*You will be able to\*\* \S",
    "**You need** ...": r"^\*\*You need\*\* \S",
    "**It takes** about 1 min 20 s on 2 cores, and 2.0 GB of memory": TAKES.pattern,
}
ENDING = ["What to take away", "When to use it", "Exercises", "Read on"]
EXPECT = re.compile(r"^\*\*What do you expect\?\*\*", re.MULTILINE)
SCHEMATIC = {"00", *(f"{number:02}" for number in range(4, 15))}
OPENS = ("connect", "start_servers", "attach_servers")
RUNNING = re.compile(r"\b(connect|start_servers|ranks|cluster|servers|workers|view|horovodrun|hosts?)\b")
RESULT = re.compile(r"\d\.\d|\d ?%|\d(\.\d+)? ?x\b")


def sections(path):
    """[(heading of level 2 or "", its cells)], in order; a markdown cell with several headings is cut before each."""
    found = [("", [])]
    for cell in cells(path):
        for part in re.split(r"(?m)^(?=## )", cell.source) if cell.cell_type == "markdown" else [cell.source]:
            if cell.cell_type == "markdown" and part.startswith("## "):
                found.append((part.partition("\n")[0][3:].strip(), []))
            if part:
                found[-1][1].append(nbformat.from_dict(cell | {"source": part}))
    return found


def section(path, heading):
    return next((inside for name, inside in sections(path) if name == heading), [])


def prose(some_cells):
    return "\n".join(cell.source for cell in some_cells if cell.cell_type == "markdown")


def in_new_style(path):
    """Whether a notebook has the header of today; the others are on their way."""
    first = cells(path)[:1]
    return bool(first and TAKES.search(first[0].source) and re.match(r"# \d\d · ", first[0].source))


def opening(path):
    """The first cell is the header, always in the same form."""
    first = next(iter(cells(path)), None)
    text = first.source if first is not None and first.cell_type == "markdown" else ""
    number = re.escape(path.name[:2])
    missing = [what for what, form in HEADER.items() if not re.search(form.replace("{number}", number), text, re.M)]
    return [f"{path.name}: the first cell lacks {what}" for what in missing]


def question(path):
    """Before the first section stands the question that the notebook answers, and in most a schematic."""
    before = sections(path)[0][1][1:]
    found = [] if "?" in without_fences(prose(before)) else [f"{path.name}: no question before the first section"]
    drawn = re.search(r"^```(text)?\n", prose(before), re.MULTILINE)
    pictures = any("image/png" in o.get("data", {}) for cell in before for o in cell.get("outputs", ()))
    if path.name[:2] in SCHEMATIC and not drawn and not pictures:
        found.append(f"{path.name}: no schematic before the first section")
    return found


def closing(path):
    """The last four sections, in this order; references; a link to the next notebook; the cluster is shut down."""
    names = [name for name, _ in sections(path)]
    found = [] if names[-4:] == ENDING else [f"{path.name}: the last sections are {names[-4:]}, not {ENDING}"]
    if any("recap" in name.lower() for name in names):
        found.append(f"{path.name}: a section named recap")
    end = prose(section(path, "Read on"))
    later = [other.name for other in sorted(path.parent.glob("*.ipynb")) if other.name > path.name]
    if later and f"({later[0]}" not in end:
        found.append(f"{path.name}: no link to {later[0]} under Read on")
    if len(re.findall(r"^[-*\d] ?", end, re.MULTILINE)) < 2:
        found.append(f"{path.name}: fewer than 2 papers or documents under Read on")
    take_away = section(path, "What to take away")
    if not any(cell.cell_type == "code" for cell in take_away):
        found.append(f"{path.name}: no code cell under What to take away computes its numbers")
    code = cells(path, "code")
    last = {called(call) for call in calls(tree(code[-1]))} if code else set()
    if opens(path) and not last & {"close", "stop", "shutdown", "stop_cluster", "__exit__"}:
        found.append(f"{code[-1].where}: the last code cell does not close what was started")
    return found


def opens(path):
    return any(called(call) in OPENS for cell in cells(path, "code") for call in calls(tree(cell)))


def expectation(path):
    """Somewhere the reader is asked what to expect, before the cell that shows it."""
    everything = cells(path)
    asked = [n for n, cell in enumerate(everything) if cell.cell_type == "markdown" and EXPECT.search(cell.source)]
    if path.name[:2] != "00" and not asked:
        return [f"{path.name}: no **What do you expect?**"]
    bare = [n for n in asked if not any(cell.cell_type == "code" for cell in everything[n + 1 : n + 3])]
    return [f"{everything[n].where}: no code cell follows the question" for n in bare]


def widths(path):
    """Lines of code and of printed output have at most 80 characters."""
    found = []
    for cell in cells(path, "code"):
        printed = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
        rich = {"text/html", "text/markdown", "image/png"}
        shown = [text for text, o in zip(printed, cell.outputs, strict=True) if not rich & set(o.get("data", {}))]
        for what, text in (("code", cell.source), *(("output", text) for text in shown)):
            wide = [line for line in text.splitlines() if len(line) > 80]
            found += [f"{cell.where}: a line of {what} with {len(line)} characters" for line in wide]
    return found


def literals(path):
    """No result is a literal in a print: what a cell says, it has computed."""
    return [
        f"{cell.where}: prints the literal {text!r}"
        for cell in cells(path, "code")
        for call in calls(tree(cell))
        if called(call) == "print"
        for argument in call.args
        for text in texts_of(argument)
        if RESULT.search(text)
    ]


def texts_of(argument):
    """The constant text of a print's argument: all of it, and of an f-string nothing that it computes."""
    if isinstance(argument, ast.Constant):
        return [argument.value] if isinstance(argument.value, str) else []
    if isinstance(argument, ast.JoinedStr) and not any(isinstance(v, ast.FormattedValue) for v in argument.values):
        return ["".join(v.value for v in argument.values)]
    return []


def exercise_places(path):
    """One exercise within the text and one at the end; where something is started, one of them changes it."""
    names = [name for name, _ in sections(path)]
    if "Exercises" not in names:
        return [f"{path.name}: no section Exercises"]
    place = names.index("Exercises")
    stubs = [[c for c in inside if c.cell_type == "code" and check_calls(c)] for _, inside in sections(path)]
    found = []
    if not any(stubs[:place]):
        found.append(f"{path.name}: no exercise within the text")
    if not any(stubs[place:]):
        found.append(f"{path.name}: no exercise under Exercises")
    everything = cells(path)
    about = []
    for number, cell in enumerate(everything):
        if cell.cell_type == "code" and check_calls(cell):
            before = nearest_prose(everything[:number][::-1]).rpartition("</details>")[2]
            about.append(before + cell.source + nearest_prose(everything[number + 1 :]).partition("</details>")[0])
    if opens(path) and not any(map(RUNNING.search, about)):
        found.append(f"{path.name}: no exercise that changes the running cluster")
    return found


def defined_once(path):
    """What a notebook shows is what runs: no cell, on a rank or not, imports from helpers what the notebook defines."""
    code = [cell for cell in cells(path, "code") if not check_calls(cell)]
    shown = {name for cell in code for name, _ in definitions(tree(cell))}
    return [
        f"{cell.where}: imports {alias.name} from {node.module}, which this notebook defines"
        for cell in code
        for node in ast.walk(tree(cell))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "helpers"
        for alias in node.names
        if (alias.asname or alias.name) in shown or alias.name in shown
    ]



def readme_agrees(readme, notebooks):
    """The README's table says of each notebook the time and the memory that its header says."""
    rows = readme.read_text(encoding="utf-8").splitlines()
    found = []
    for path in notebooks:
        minutes, seconds, memory = TAKES.search(cells(path)[0].source).groups()
        time = " ".join(f"{n} {unit}" for n, unit in ((minutes, "min"), (seconds, "s")) if n)
        row = next((row for row in rows if f"](notebooks/{path.name}) |" in row), "")
        if not row.endswith(f" | {time} | {memory} GB |"):
            found.append(f"README: not {time} and {memory} GB for {path.name}: python tools/run_notebooks.py --table")
    return found


STYLE = opening, question, closing, expectation, widths, literals, exercise_places, defined_once
