"""The lists of packages agree with each other and with what the code imports; an installed `helpers` imports."""

import ast
import fnmatch
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ("helpers", "lesson_parts", "exercises", "laptop_cluster", "examples")
FOLDERS = (*INSTALLED, "benchmarks", "tests", "tools", "book")
OWN = {path.stem for folder in FOLDERS for path in (ROOT / folder).glob("*.py")} | {*FOLDERS, "notebook_rules"}
CONDA_TO_PIP = {"matplotlib-base": "matplotlib", "nbconvert-core": "nbconvert"}
BOOK = {"docutils", "myst-nb", "myst-parser", "playwright"}
BOOK |= {"sphinx", "sphinx-book-theme", "sphinx-copybutton", "sphinx-togglebutton"}
PIP_ALONE = {"cmake", "wheel", *BOOK}  # a conda environment compiles nothing and renders no book


def requirement_lines():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pip_pins():
    return dict(line.split(" ;")[0].split("==") for line in requirement_lines())


def pip_direct():
    first = (ROOT / "requirements.txt").read_text().split("# What those need")[0]
    return {one_name(name) for name in re.findall(r"^([a-z0-9-]+)==", first, re.MULTILINE)}


def conda_pins():
    """{name as pip has it: version, or "" for any}"""
    text = (ROOT / "environment.yml").read_text()
    lines = re.findall(r"^  - ([a-z0-9_.-]+)(?:=([^=\s]+))?(?:\s|=|$)", text, re.MULTILINE)
    names = [CONDA_TO_PIP.get(name, name) for name, _ in lines]
    pins = {one_name(name): version for name, (_, version) in zip(names, lines, strict=True)}
    return {name: pins[name] for name in pins.keys() - {"conda-forge", "nodefaults", "pip"}}


def declared(*extras):
    """What pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return {one_name(re.match(r"[\w.-]+", line).group()) for lines in lists for line in lines}


def one_name(distribution):
    """As PyPI spells it; there are two TensorFlows."""
    name = re.sub(r"[-_.]+", "-", distribution).lower()
    return "tensorflow" if name == "tensorflow-cpu" else name


@cache
def distribution_of():
    """{module: the distribution it comes from}"""
    return {module: one_name(names[0]) for module, names in packages_distributions().items()}


def imports(*folders):
    """The distributions that the Python files of these folders import."""
    modules = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    modules |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    modules.add(node.module)
    return distributions(modules)


def imports_of_lessons():
    modules = set()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                modules |= set(re.findall(r"^\s*(?:import|from) (\w+)", "".join(cell["source"]), re.MULTILINE))
    return distributions(modules - {"jax"})  # lesson 31 runs it where somebody has installed it


def distributions(modules):
    tops = {module.split(".")[0] for module in modules} - sys.stdlib_module_names - OWN
    return {distribution_of()[top] for top in tops}


def test_every_requirement_is_an_exact_version_and_nothing_else():
    condition = r"[a-z_]+ [<>=!]+ \"[a-z0-9._]+\""
    exact = re.compile(rf"[a-z0-9-]+==[0-9][0-9a-z.]*( ; {condition}( (and|or) {condition})?)?")
    assert [line for line in requirement_lines() if not exact.fullmatch(line)] == []
    names = [re.match("[a-z0-9-]+", line).group() for line in requirement_lines()]
    assert len(names) == len(set(names)) > 100


def test_the_versions_that_this_environment_has_are_those_of_requirements_txt():
    for name in ("numpy", "horovod", "ipyparallel", "jupyterlab", "nbval", "gensim"):
        assert version(name) == pip_pins()[name]


def test_what_is_installed_asks_for_what_it_imports():
    """`pip install .` brings it; Horovod is the exception, because pip alone builds it without TensorFlow."""
    assert imports(*INSTALLED) - {"horovod"} == declared()


def test_every_import_is_in_the_three_lists():
    imported = imports(*FOLDERS) | imports_of_lessons()
    assert len(imported) > 25
    everything = declared("horovod", "lab", "test", "book") | {"tf-keras"}  # it would bring a second TensorFlow
    assert imported - everything == set()
    assert imported - pip_direct() == set()
    assert imported - conda_pins().keys() - PIP_ALONE == set()


def test_conda_installs_what_pip_installs_in_the_same_versions():
    pip, conda = pip_pins(), conda_pins()
    assert len(pip_direct()) > 30 and pip_direct() - PIP_ALONE - conda.keys() == set()
    assert conda.keys() - pip.keys() == {"python"}
    versions = {name: (pip[name], wanted) for name, wanted in conda.items() if wanted and name != "python"}
    assert {name: pair for name, pair in versions.items() if not fnmatch.fnmatch(*pair)} == {}
    assert [name for name, wanted in conda.items() if not wanted] == ["grpcio"]


def test_no_file_names_a_package_index():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    hosts = [b".".join(parts) for parts in [(b"pypi", b"org"), (b"pythonhosted", b"org"), (b"anaconda", b"org")]]
    hosts += [b"--".join([b"", option]) for option in (b"index-url", b"extra-index-url", b"find-links")]
    files = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    assert len(files) > 5
    assert [(path.name, host) for path in files if path.is_file() for host in hosts if host in path.read_bytes()] == []


@pytest.mark.slow
def test_installed_without_horovod_text_and_word2vec_import(tmp_path):
    """The wheel, unpacked, on what is here but Horovod: everything that the two rooms export."""
    wheel = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *wheel], check=True, cwd=tmp_path, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    program = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        sys.modules["horovod"] = None  # any import of it fails
        import examples, exercises, laptop_cluster
        import helpers.text, helpers.word2vec
        for room in (helpers.text, helpers.word2vec):
            assert room.__file__.startswith(sys.argv[1]) and len(room.__all__) > 5
            for name in room.__all__:
                getattr(room, name)
    """
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(built).extractall(unpacked)
    subprocess.run([sys.executable, "-P", "-c", program, str(unpacked)], check=True, cwd=tmp_path)
