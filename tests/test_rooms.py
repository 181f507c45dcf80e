"""The module in rooms: small files, imports one way, public names that resolve, and notebooks that use the rooms."""

import ast
import importlib
import re
import subprocess
import sys

import notebook_rules as rules
import pytest

HELPERS = rules.ROOT / "helpers"
FILES = sorted(HELPERS.rglob("*.py"))
NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
ROOMS = {"text": 1, "word2vec": 2, "cluster": 3, "exchange": 4}  # imports go from a high floor to a low one
TOP = 5  # exercises and plots
OLD_NAME = re.compile(
    r"helpers[./](blocks|ladder|climb|wire|nursery|servers|straggler|memory|onengine|embeddings|train|checks|download|"
    r"corpus|vocab|skipgram|losses|ranks|sharded|engines)\b"
)


def code_lines(path):
    """The numbers of the lines that are not blank, not comments and not docstrings."""
    source = path.read_text(encoding="utf-8")
    documented = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, *rules.DEFINITIONS)) and ast.get_docstring(node) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.splitlines(), 1)
    return [n for n, line in lines if line.strip() and not line.strip().startswith("#") and n not in documented]


def imported(path):
    """Every module that a file imports somewhere, also inside a function: {"helpers.text.vocab", "numpy", ...}."""
    found = set()
    package = path.relative_to(rules.ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1]] if node.level else [])
            module = ".".join(filter(None, [base, node.module]))
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def test_the_module_is_small():
    later = {"elastic.py", "hosts.py", "long_text.py"}  # of notebooks 10 and 13 alone, and for texts of a gigabyte
    lines = {path: len(code_lines(path)) for path in FILES}
    assert sum(n for path, n in lines.items() if path.name not in later) <= 2_060
    assert sum(n for path, n in lines.items() if path.name in later) <= 410


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HELPERS)))
def test_a_file_is_short_and_imports_from_the_floors_below(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250
    here = path.relative_to(HELPERS).parts
    own = ROOMS.get(here[0], TOP)
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "helpers" and len(parts) > 1:
            theirs = ROOMS.get(parts[1], TOP)
            assert theirs < own or parts[1] == here[0] or own == TOP, f"{here} imports {module}"
        if here[0] == "text":
            assert parts[0] not in ("tensorflow", "tf_keras", "keras", "horovod", "ipyparallel"), module


def test_no_file_under_an_old_name():
    assert sorted(path.stem for path in HELPERS.glob("*.py")) == ["__init__", "exercises", "plots"]
    tracked = subprocess.run(["git", "ls-files"], cwd=rules.ROOT, capture_output=True, text=True).stdout.split("\n")
    texts = [rules.ROOT / name for name in tracked if name.endswith((".py", ".ipynb", ".md", ".toml", "Makefile"))]
    texts = [path for path in texts if path.exists()] or FILES  # an unpacked archive has no list of its files
    assert [(path.name, m[0]) for path in texts if (m := OLD_NAME.search(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_resolves(room):
    module = importlib.import_module(f"helpers.{room}")
    assert module.__doc__ and len(module.__all__) >= 3
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert sorted(set(module.__all__)) == sorted(module.__all__)


@pytest.mark.parametrize(
    "line",
    [
        "import helpers.text; [getattr(helpers.text, name) for name in helpers.text.__all__]",
        "from helpers.cluster import connect",
        "import helpers.word2vec, helpers.exchange, helpers.plots",
    ],
)
def test_what_does_not_load_tensorflow(line):
    program = f"import sys; {line}; sys.exit(any(name in sys.modules for name in ('tensorflow', 'tf_keras', 'gensim')))"
    assert subprocess.run([sys.executable, "-c", program], cwd=rules.ROOT, timeout=120).returncode == 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_from_rooms_and_only_public_names(path):
    for cell in rules.cells(path, "code"):
        for node in ast.walk(rules.tree(cell)):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.count(".") > 1 and a.name.startswith("helpers")]
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "helpers":
                assert node.module.count(".") == 1, f"{cell.where}: {node.module} is not a room"
                room = importlib.import_module(node.module)
                names = getattr(room, "__all__", None) or vars(room)
                public = {name for name in names if not name.startswith("_")}
                if path.name.startswith("06"):  # puts its own functions into these two, for the trainer to use
                    public |= {"replicas", "shared_negatives"}
                assert {a.name for a in node.names} <= public, f"{cell.where}: not public in {node.module}"


@pytest.mark.parametrize(("given", "found"), [(None, "1"), ("0", "0")])
def test_onednn_is_on_also_where_tensorflow_leaves_it_off_unless_the_user_says_so(given, found, monkeypatch):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    if given:
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given)
    code = "import helpers, os; print(os.environ['TF_ENABLE_ONEDNN_OPTS'])"
    said = subprocess.run([sys.executable, "-c", code], cwd=rules.ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == found
