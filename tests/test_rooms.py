"""The module in rooms: imports one way, public names that resolve, and notebooks that use the rooms."""

import ast
import importlib
import os
import re
import subprocess
from graphlib import TopologicalSorter

import notebook_rules as rules
import pytest
from programs import said_by

import helpers

HELPERS = rules.ROOT / "helpers"
FILES = sorted(HELPERS.rglob("*.py"))
NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
ROOMS = {"text": 1, "exchange": 2, "word2vec": 3, "cluster": 4}  # imports go from a high floor to a low one
TOP = 5  # plots
FILE = re.compile(r"\b(?:helpers|lesson_parts|benchmarks|examples|tools)/[\w/]+\.(?:py|sh|slurm|md|json|mplstyle)\b")
MODULE = re.compile(r"\bhelpers\.(?!no_such_)(\w+)(?:\.(\w+))?")


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HELPERS)))
def test_a_file_imports_from_the_floors_below(path):
    here = path.relative_to(HELPERS).parts
    own = ROOMS.get(here[0], TOP)
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "helpers" and len(parts) > 1:
            theirs = ROOMS.get(parts[1], TOP)
            assert theirs < own or parts[1] == here[0] or own == TOP, f"{here} imports {module}"
        assert parts[0] not in ("lesson_parts", "exercises", "examples", "benchmarks"), f"{here} imports {module}"
        if here[0] == "text":
            assert parts[0] not in ("tensorflow", "tf_keras", "keras", "horovod", "ipyparallel"), module


def test_no_circles():
    """No file imports, over others or inside a function, one that imports it."""
    names = {".".join(path.relative_to(rules.ROOT).with_suffix("").parts): path for path in FILES}
    graph = {}
    for name, path in names.items():
        modules = {other for module in imported(path) for other in (module, module.rpartition(".")[0])}
        graph[name] = (modules & names.keys()) - {name}
    assert set(TopologicalSorter(graph).static_order()) == set(names)  # it raises CycleError


def is_there(room, name):
    """Whether a room, or what else is in helpers, is there, and has a file or a public name of this name."""
    folder = HELPERS / room
    if name and folder.is_dir():
        return any(folder.glob(f"{name}.*")) or name in (folder / "__init__.py").read_text(encoding="utf-8")
    return folder.is_dir() or any(HELPERS.glob(f"{room}.*"))


def test_what_a_text_names_is_there():
    """Also in prose and in comments: no file and no module under a name that it had once."""
    tracked = subprocess.run(["git", "ls-files"], cwd=rules.ROOT, capture_output=True, text=True).stdout.split("\n")
    kinds = (".py", ".ipynb", ".md", ".toml", "Makefile")
    known_of_old = "CHANGELOG.md"  # it says what has gone
    texts = [rules.ROOT / name for name in tracked if name.endswith(kinds) and name != known_of_old]
    texts = [path for path in texts if path.exists()] or FILES  # an unpacked archive has no list of its files
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert [name for name in set(FILE.findall(text)) if not (rules.ROOT / name).exists()] == [], path
        assert [name for name in set(MODULE.findall(text)) if not is_there(*name)] == [], path


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_resolves(room):
    module = importlib.import_module(f"helpers.{room}")
    assert module.__doc__ and len(module.__all__) >= 3
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


WITHOUT_TENSORFLOW = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "tf_keras", "keras", "horovod", "ipyparallel"]))  # cannot be imported
from helpers.text import *
assert len(Vocab.build(words := load_corpus("planted", n_words=100).words).encode(words)) == 100
"""
NO_TENSORFLOW_YET = """
import sys
import helpers.word2vec, helpers.exchange, helpers.plots
from helpers.cluster import connect
assert not {"tensorflow", "tf_keras", "gensim"} & sys.modules.keys()
"""
LEAN_IMPORT = """
import gc, sys
from helpers.cluster.lean_import import lean_import
with lean_import():
    import tensorflow
assert not {"matplotlib", "sklearn"} & sys.modules.keys()
import matplotlib, sklearn
assert gc.isenabled()
"""
# scores of scores.py and pair_dataset of pair_dataset.py: lazy_loader keeps the file out of the way
SAME_NAME = """
import helpers.word2vec.scores, helpers.word2vec.pair_dataset
from helpers.word2vec import pair_dataset, scores
assert callable(scores) and callable(pair_dataset)
"""


@pytest.mark.parametrize(
    "program",
    [WITHOUT_TENSORFLOW, NO_TENSORFLOW_YET, LEAN_IMPORT + SAME_NAME],
    ids=["the room of texts needs no TensorFlow", "the others load it late", "a lean import hides nothing afterwards"],
)
def test_imports(program):
    said_by(program)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_from_rooms_and_only_public_names(path):
    for cell in rules.cells(path, "code"):
        for node in ast.walk(rules.tree(cell)):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.count(".") > 1 and a.name.startswith("helpers")]
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("helpers", "lesson_parts"):
                assert node.module.count(".") == 1, f"{cell.where}: {node.module} is not a room"
                room = importlib.import_module(node.module)
                names = getattr(room, "__all__", None) or vars(room)
                public = {name for name in names if not name.startswith("_")}
                assert {a.name for a in node.names} <= public, f"{cell.where}: not public in {node.module}"


def test_onednn_is_on_also_where_tensorflow_leaves_it_off_unless_the_user_says_so(monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    importlib.reload(helpers)
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == "0"
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    importlib.reload(helpers)
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == "1"
