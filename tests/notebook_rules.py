"""What every lesson keeps, as rules: each takes a notebook's path and returns complaints, a list of str."""

import ast
import copy
import functools
import json
import re
import socket
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parent.parent
ALLOWED_MAGICS = {"px", "matplotlib", "time", "capture"}
# names that are free in the other lessons
OF_ONE_LESSON = {
    "lesson_parts.turns": "12",
    "lesson_parts.block_runs": "13",
    "lesson_parts.many_ranks": "14",
    "lesson_parts.deaths": "20",
    "lesson_parts.huge_tables": "18",
    "lesson_parts.table_homes": "19",
    "lesson_parts.first_host": "23",
    "lesson_parts.gains": "28",
    "lesson_parts.dates": "29",
    "lesson_parts.commands": "30",
}
STANDS_IN = {  # lesson: module: what both define, and what must be the same code
    "03": {
        "helpers.text.skipgram": "generate_batch pairs_within draw_reach skipgram_pairs subsample shard",
    },
    "04": {
        "helpers.text.skipgram": "pairs_of_block cut_batches pair_batches",
        "helpers.word2vec.pair_dataset": "pair_dataset",
    },
    "05": {
        "lesson_parts.losses": "full_softmax sampled_logits corrected_logits sampled_softmax nce sgns",
        "benchmarks.losses": "make_loss adagrad_step",
    },
    "06": {
        "lesson_parts.losses": "draw_samples",
        "benchmarks.losses": "make_loss adagrad_step mixed_sgns",
    },
    "08": {
        "lesson_parts.ring": "ring_allreduce bare_ring",
        "benchmarks.allreduce": "compare_with_sockets",
    },
    "09": {"helpers.text.skipgram": "shard", "helpers.word2vec.model": "make_tables nce_loss make_step"},
    "12": {
        "lesson_parts.strategies": (
            "make_taped make_deduplicated small_steps all_rows make_local_sgd make_overlapped"
        ),
        "helpers.word2vec.model": "merge",
        "helpers.exchange.merging": "due_rows",
    },
    "13": {
        "helpers.word2vec.block_trainer": "highest_rates",
        "helpers.word2vec.kernel": "dot_products make_train_words",
    },
    "14": {
        "helpers.exchange.merging": "merge_changes",
        "helpers.word2vec.schedule": "schedule bounded_changes",
    },
    "15": {
        "helpers.cluster.sharded_tables": "shards lookup gradients sgd add",
        "helpers.word2vec.model": "merge",
        "lesson_parts.server_steps": "new_tables noise negative_sampling plain_step own_pairs",
    },
    "16": {
        "helpers.cluster.sharded_tables": "bundle",
        "lesson_parts.server_steps": "local_steps local_word2vec",
    },
    "17": {
        "lesson_parts.three_ways": "loss_and_gradients rank_step OnServer pull_and_push Hogwild",
    },
    "18": {"helpers.cluster.sharded_tables": "make_table"},
    "20": {"lesson_parts.three_ways": "all_or_none rank_step"},
    "21": {
        "lesson_parts.resumable": "Progress next_words next_batch start_model",
        "lesson_parts.whole_files": "as_arrays read_checkpoint",
        "lesson_parts.checkpoints": "save_checkpoint restore_checkpoint",
    },
    "22": {"lesson_parts.resumable": "part_of"},
    "27": {"lesson_parts.digits": "product ProductLayer own_network cnn OnRanks compiled means_and_count"},
}
PROMPT = re.compile(r'(?<!")\bWhat\s+do\s+you\s+expect\b')  # in quotation marks it is spoken of
CHOICE = re.compile(r"^<details><summary>([a-z])\) ", re.MULTILINE)
YOU = re.compile(r"^\*\*It takes you\*\* about (\d+) minutes, with (?:the )?exercises", re.MULTILINE)
MACHINE = re.compile(
    r"^\*\*It takes the machine\*\* about (?:(\d+) min)? ?(?:(\d+) s)? on 2 cores, and (\d+\.\d) GB of memory",
    re.MULTILINE,
)
OPENS = {"connect", "start_servers", "attach_servers"}
CLOSES = {"close", "stop", "shutdown", "stop_cluster", "__exit__"}
LEAKS = {
    "an address, which changes from run to run": re.compile(r" at 0x[0-9a-f]{6,}"),
    "an absolute path": re.compile(r"(?<![\w.~])/(home|root|tmp|Users|private|work)/"),
    "the path of this repository": re.compile(re.escape(str(ROOT))),
    "a URL with a token": re.compile(r"https?://\S*token=", re.IGNORECASE),
}
LINK = re.compile(r'\]\(\s*<?([^)\s>]+)[^)]*\)|\b(?:src|href)="([^"]+)"|^\[[^\]]+\]:\s*(\S+)', re.MULTILINE)
REGISTRY = re.compile(r"https?://[^\s)]*(pypi|conda\b|registry|/simple\b)", re.IGNORECASE)
RESULT = re.compile(r"\d\.\d|\d ?%|\d(\.\d+)? ?x\b")
RICH = {"text/html", "text/markdown", "image/png", "image/svg+xml"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# ---- what the rules are made of


def cells(path, kind=None):
    """The cells of a notebook, or those of one kind; `cell.where` says in complaints which one it is."""
    return [cell for cell in cells_of(path.name, path.read_text("utf-8")) if kind in (None, cell.cell_type)]


@functools.cache
def cells_of(name, text):
    found = nbformat.reads(text, as_version=4).cells
    for number, cell in enumerate(found, 1):
        cell.where = f"{name} cell {number} ({cell.source.partition(chr(10))[0][:40]})"
    return found


def tags(cell):
    return set(cell.metadata.get("tags", []))


def texts(cell):
    """Everything that the outputs of a code cell let one read."""
    found = []
    for output in cell.outputs:
        found += [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
        found += [str(data) for kind, data in output.get("data", {}).items() if kind.startswith("text/")]
    return found


@functools.cache
def parse(source, where):
    """A cell as ast.Module: a magic is a call of get_ipython(); the Python below a cell magic is included."""
    module = ast.parse(TransformerManager().transform_cell(source), where)
    for call in ipython_calls(module):
        if call.func.attr == "run_cell_magic" and call.args[0].value in ALLOWED_MAGICS:
            module.body += parse(call.args[2].value, where).body
    return module


def tree(cell):
    return parse(cell.source, cell.where)


def calls(module):
    return [node for node in ast.walk(module) if isinstance(node, ast.Call)]


def called(call):
    """The last part of the name that is called: "f" for a.b.f(x)."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def ipython_calls(module):
    """The magics and shell lines of a parsed cell."""
    return [c for c in calls(module) if ast.unparse(c.func).startswith("get_ipython().")]


def asserts(cell):
    """Whether a code cell asserts something, with `assert` or with a function named assert_..."""
    module = tree(cell)
    conditions = [node.test for node in ast.walk(module) if isinstance(node, ast.Assert)]
    real = any(not isinstance(condition, ast.Constant) for condition in conditions)
    return real or any(called(call).startswith("assert_") for call in calls(module))


# ---- the file and its outputs


def file_format(path):
    """Valid nbformat 4.5 with cell ids, kernel python3, no widgets."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    ids = [cell.get("id") for cell in raw["cells"]]
    if None in ids or len(set(ids)) < len(ids):
        return [f"{path.name}: a cell without an id of its own"]
    nbformat.validate(raw)
    problems = {
        "not nbformat 4.5": (raw["nbformat"], raw["nbformat_minor"]) != (4, 5),
        "the kernel is not python3": raw["metadata"].get("kernelspec", {}).get("name") != "python3",
        "widgets are saved": "widgets" in raw["metadata"] or "jupyter.widget-view" in json.dumps(raw),
    }
    return [f"{path.name}: {problem}" for problem, there in problems.items() if there]


def executed(path):
    """Run once from top to bottom; errors and stderr only where the tag raises-exception announces them."""
    found = []
    for count, cell in enumerate(cells(path, "code"), 1):
        if cell.execution_count != count:
            found.append(f"{cell.where}: execution count {cell.execution_count}, should be {count}")
        if "raises-exception" in tags(cell):
            continue
        if any(output.output_type == "error" for output in cell.outputs):
            found.append(f"{cell.where}: an error in the output")
        if any(output.get("name") == "stderr" for output in cell.outputs) or "[stderr:" in str(texts(cell)):
            found.append(f"{cell.where}: stderr in the output")
    return found


def ignored_outputs(path):
    """Where an output is not compared, an assert stands there or in the next code cell; no cell is left out."""
    code = cells(path, "code")
    found = []
    for number, cell in enumerate(code):
        ignored = "nbval-ignore-output" in tags(cell)
        if ignored and not any(map(asserts, code[number : number + 2])):
            found.append(f"{cell.where}: nothing asserted here or in the next code cell")
        if ignored and "raises-exception" in tags(cell):
            found.append(f"{cell.where}: nbval would not see that an ignored cell no longer raises")
        if "nbval-skip" in tags(cell) or re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)_", cell.source):
            found.append(f"{cell.where}: nbval-skip and nbval comments are not used")
    return found


def no_leaks(path, host=None):
    """No output tells whose machine it was; a host name that is short or a word of the notebook does not."""
    host = host or socket.gethostname()
    name = re.compile(rf"(?<![\w-]){re.escape(host)}(?![\w-])")
    patterns = dict(LEAKS)
    if len(host) >= 4 and not any(name.search(cell.source) for cell in cells(path)):
        patterns["the host name"] = name
    return [
        f"{cell.where}: {what} in the output"
        for cell in cells(path, "code")
        for what, pattern in patterns.items()
        if any(pattern.search(text) for text in texts(cell))
    ]


def widths(path):
    """Lines of code and of printed output have at most 80 characters: more is cut off in the book."""
    found = []
    for cell in cells(path, "code"):
        printed = [
            output.get("text", "") or output.get("data", {}).get("text/plain", "")
            for output in cell.outputs
            if not RICH & set(output.get("data", {}))
        ]
        for what, text in [("code", cell.source), *(("output", text) for text in printed)]:
            wide = [line for line in text.splitlines() if len(line) > 80]
            found += [f"{cell.where}: a line of {what} with {len(line)} characters" for line in wide]
    return found


# ---- the code


def magics(path):
    """Only the magics of a short list, no shell: nbval passes unknown magics and whatever they hide."""
    found = []
    for cell in cells(path, "code"):
        if "\n%%" in cell.source.strip():
            found.append(f"{cell.where}: %% below the first line")
        for call in ipython_calls(tree(cell)):
            name = call.args[0].value if call.func.attr.endswith("_magic") else call.func.attr
            if name not in ALLOWED_MAGICS:
                found.append(f"{cell.where}: the magic {name!r} is not one of {sorted(ALLOWED_MAGICS)}")
    return found


def literals(path):
    """No result is a literal in a print: what a cell says, it has computed."""
    return [
        f"{cell.where}: prints the literal {argument.value!r}"
        for cell in cells(path, "code")
        for call in calls(tree(cell))
        if called(call) == "print"
        for argument in call.args
        if isinstance(argument, ast.Constant) and RESULT.search(str(argument.value))
    ]


def closes(path):
    """The last code cell shuts down what the notebook started."""
    code = cells(path, "code")
    opens = OPENS & {called(call) for cell in code for call in calls(tree(cell))}
    last = {called(call) for cell in code[-1:] for call in calls(tree(cell))}
    return [f"{code[-1].where}: the last code cell closes nothing"] if opens and not last & CLOSES else []


def copies(path):
    """What a notebook and helpers (or lesson_parts) both define is the same code, docstrings aside.

    STANDS_IN names the module. It may be defined in the notebook's own process, on ranks, or in both.
    """
    due = {name: module for module, names in STANDS_IN.get(path.name[:2], {}).items() for name in names.split()}
    found = []
    shown = set()
    for cell in cells(path, "code"):
        for name, code in [] if check_calls(cell) else definitions(tree(cell)):
            shown.add(name)
            modules = [module for module in code_of_modules().get(name, ()) if not module.startswith("benchmarks")]
            elsewhere = [module for module in modules if OF_ONE_LESSON.get(module, path.name[:2]) == path.name[:2]]
            if name not in due and elsewhere:
                found.append(f"{cell.where}: {name} is also in {elsewhere}, and not in STANDS_IN")
            elif name in due and code != code_of_modules().get(name, {}).get(due[name]):
                found.append(f"{cell.where}: {name} is not the same as in {due[name]}")
    missing = sorted(due.keys() - shown)
    return found + [f"{path.name}: {name} of {due[name]} does not stand in it" for name in missing]


def defined_once(path):
    """What a notebook shows is what runs: no cell, on a rank or not, imports from them what the notebook defines."""
    code = [cell for cell in cells(path, "code") if not check_calls(cell)]
    shown = {name for cell in code for name, _ in definitions(tree(cell))}
    return [
        f"{cell.where}: imports {alias.name} from {node.module}, which this notebook defines"
        for cell in code
        for node in ast.walk(tree(cell))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("helpers", "lesson_parts")
        for alias in node.names
        if {alias.name, alias.asname} & shown
    ]


@functools.cache
def code_of_modules():
    """{public name: {module of helpers, lesson_parts or benchmarks that defines it: its code}}."""
    found = {}
    for file in [file for name in ("helpers", "lesson_parts", "benchmarks") for file in (ROOT / name).rglob("*.py")]:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for name, code in definitions(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(name, {})[module] = code
    return found


def definitions(module):
    """The public functions and classes of a module: [(name, code without docstrings and comments)]."""
    found = [node for node in module.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]
    return [(node.name, ast.unparse(without_docstrings(node))) for node in found]


def without_docstrings(definition):
    definition = copy.deepcopy(definition)
    for node in ast.walk(definition):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return definition


# ---- exercises


def solutions(path):
    """Each exercise is saved unsolved, with a hint, and its solution follows, folded away (test_exercises runs it)."""
    found = []
    for stub, solution in exercise_pairs(path):
        if not "".join(texts(stub)).startswith("not yet: "):
            found.append(f"{stub.where}: the saved output is not `not yet: ...`")
        if "<details>" not in solution or not solution_blocks(solution):
            found.append(f"{stub.where}: no <details> with a ```python block in the next markdown cell")
    return found


def exercise_pairs(path):
    """Every code cell that calls a check, and the markdown cell after it: [(cell, str)]."""
    everything = cells(path)
    return [
        (cell, next((later.source for later in everything[number:] if later.cell_type == "markdown"), ""))
        for number, cell in enumerate(everything)
        if cell.cell_type == "code" and check_calls(cell)
    ]


def check_calls(cell):
    """The calls check(...) that stand by themselves or are assigned, not those inside a function."""
    values = [getattr(statement, "value", None) for statement in tree(cell).body]
    return [v for v in values if isinstance(v, ast.Call) and called(v) == "check"]


def solution_blocks(markdown):
    return re.findall(r"^```python\n(.*?)^```", markdown, re.DOTALL | re.MULTILINE)


def choices(path):
    """Each "What do you expect?" is followed, in its cell, by two or more folded answers, a), b) and so on."""
    return [
        f"{cell.where}: no folded choices a), b) after **What do you expect**"
        for cell in cells(path, "markdown")
        if not has_choices(cell.source)
    ]


def has_choices(markdown):
    """Whether every prompt of a text has its own choices."""
    prompts = markdown.split("**What do you expect")[1:]
    letters = ["".join(CHOICE.findall(prompt)) for prompt in prompts]
    return len(prompts) == len(PROMPT.findall(markdown)) and set(letters) <= {"ab", "abc", "abcd"}


def folded(path):
    """A folded answer ends on a line of its own; else the e-book's page is no XML."""
    return [
        f"{cell.where}: </details> is not on a line of its own"
        for cell in cells(path, "markdown")
        if re.search(r"\S[^\n]*</details>", cell.source)
    ]


# ---- links, and the table of lessons


def links(path):
    """Links to files lead to files of this repository."""
    return [
        f"{cell.where}: {complaint}"
        for cell in cells(path, "markdown")
        for complaint in bad_links(cell.source, path.parent, path.parent.parent)
    ]


def bad_links(markdown, folder, root):
    """The links of a text in `folder` that lead to no file below `root`, or to a package registry."""
    text = re.sub(r"(`{3,4}).*?\1(?!`)", "", markdown, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    found = [f"a link to a package registry: {match[0]}" for match in REGISTRY.finditer(text)]
    for target in ("".join(groups) for groups in LINK.findall(text)):
        file = folder / target.partition("#")[0].replace("%20", " ")
        elsewhere = re.match(r"https?://|mailto:|attachment:|#", target)
        if not elsewhere and not (file.exists() and file.resolve().is_relative_to(root.resolve())):
            found.append(f"a link to {target}, which is not a file of this repository")
    return found


def header(path):
    """The first cell says how long the lesson takes a person, an hour at most, and how long the machine."""
    opening = cells(path)[0].source
    you, machine = YOU.search(opening), MACHINE.search(opening)
    problems = {
        "no **It takes you** about 50 minutes, with the exercises": you is None,
        "more than 60 minutes: these are two lessons": you is not None and int(you[1]) > 60,
        "no **It takes the machine** about 1 min 20 s on 2 cores, and 2.0 GB of memory": machine is None,
    }
    return [f"{path.name}: {problem}" for problem, there in problems.items() if there]


def table_rows(page, notebooks):
    """Every lesson has a row in the table of lessons, which says of it what its header says."""
    rows = page.read_text(encoding="utf-8").splitlines()
    found = []
    for path in notebooks:
        row = next((row for row in rows if row.startswith("|") and f"](../notebooks/{path.name})" in row), "")
        opening = cells(path)[0].source
        you, machine = YOU.search(opening), MACHINE.search(opening)
        if you is None or machine is None:
            continue  # the rule `header` says so
        end = f" | {you[1]} min | {time_of(machine)} | {machine[3]} GB |"
        if not row.endswith(end):
            found.append(f"{page.name}: no row that ends in{end} for {path.name}")
    return found


def parts(page):
    """The header of each lesson names the part under which the table of lessons has it."""
    number, part, found = 0, "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if begins := re.match(r"\| \*\*(.+?)\*\* \|", line):
            number, part = number + 1, begins[1]
        elif row := re.match(r"\| \[[^]]*\]\((\.\./notebooks/.+?)\)", line):
            path = page.parent / row[1]
            if f"*Part {number}, {part}*" not in cells(path)[0].source:
                found.append(f"{path.name}: its header does not say *Part {number}, {part}*")
    return found


def time_of(takes):
    return " ".join(f"{number} {unit}" for number, unit in ((takes[1], "min"), (takes[2], "s")) if number)


def page_links(page, root):
    """The links of a page to files lead to files of this repository."""
    text = page.read_text(encoding="utf-8")
    return [f"{page.name}: {complaint}" for complaint in bad_links(text, page.parent, root)]


RULES = (
    file_format,
    header,
    executed,
    ignored_outputs,
    no_leaks,
    widths,
    magics,
    literals,
    closes,
    copies,
    defined_once,
    solutions,
    choices,
    folded,
    links,
)
