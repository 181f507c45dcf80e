"""For pytest on tests/ and, with --nbval, on notebooks/: what runs where, a profile of its own, no process left."""

import os
import re
import shutil
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import psutil
import pytest

from helpers.cluster import HostsUnavailable, hosts
from helpers.cluster.engines import CONTROLLER
from helpers.text.corpus import load_corpus

MARK = "W2V_TEST_SESSION"
SECONDS = {  # of the slow files, so that they start first; of a notebook its header says it
    "test_lab": 300, "test_book": 80, "test_checkpoints": 90, "test_elastic": 90,
    "test_ranks": 60, "test_setup": 60, "test_losses": 60, "test_servers": 60, "test_shared_negatives": 60,
    "test_edited_notebook": 60, "test_wrong_notebook": 40, "test_strategies": 40, "test_sequence_models": 30,
    "test_other_models": 30, "test_sharded": 30, "test_hosts": 30, "test_launchers": 120, "test_benchmarks": 80,
}  # fmt: skip
OVER_TIME = "CI has 35 minutes, set-up included, and they do not last for this notebook: run make test without CI=true"
spent = Counter()  # seconds of each test, and of each notebook all cells together


def leftovers(mark):
    """The processes started by this session (they inherit its mark) that are still there, without this one."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(MARK) == mark
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if marked and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def is_worker(config):
    """Whether this process is one of those that `pytest -n 2` starts: the one that started it looks for leftovers."""
    return hasattr(config, "workerinput")


def pytest_configure(config):
    os.environ.setdefault(MARK, uuid.uuid4().hex)
    os.environ["IPP_NONINTERACTIVE"] = "1"
    os.environ["PYTHONFAULTHANDLER"] = ""
    config.folder = Path(tempfile.mkdtemp(prefix="tests-"))
    profile = config.folder / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    config.before = {name: os.environ.get(name) for name in ("IPYTHONDIR", "TMPDIR")}
    os.environ["IPYTHONDIR"] = str(profile.parent)  # no test or notebook meets the reader's own ipcluster
    os.environ["TMPDIR"] = str(config.folder)  # nbval kills its kernels: what TensorFlow has left there goes at the end
    beats = "".join(f"c.{option.removeprefix('--')}\n" for option in CONTROLLER)
    (profile / "ipcontroller_config.py").write_text(beats)  # an `ipcluster start` of the tests is as quick as `connect`


def pytest_unconfigure(config):
    shutil.rmtree(config.folder, ignore_errors=True)
    for name, value in config.before.items():
        del os.environ[name]
        if value is not None:
            os.environ[name] = value


def expected_seconds(path):
    if path.suffix != ".ipynb":
        return SECONDS.get(path.stem, 10)
    found = re.search(r"\*\*It takes\*\* about (?:(\d+) min)? ?(?:(\d+) s)?", path.read_text(encoding="utf-8"))
    return 60 * int(found[1] or 0) + int(found[2] or 0) if found else 90


def why_no_hosts():
    """Why this machine cannot run every cell of notebook 13; "" if it can."""
    try:
        with hosts(1):
            return "" if shutil.which("slurmctld") else "Slurm is not installed"
    except HostsUnavailable as error:
        return str(error)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Notebooks first: what they measure has no browser beside it. Of each kind the slow ones first.

    The cells of a notebook and the tests of a file go to one worker.
    """
    seconds = {path: expected_seconds(path) for path in {item.path for item in items}}
    items.sort(key=lambda item: (item.path.suffix != ".ipynb", -seconds[item.path]))
    skipped = {number: OVER_TIME for number in ("11", "13", "14") if "CI" in os.environ}
    wanted = {path.name[:2] for path in seconds if path.suffix == ".ipynb"} - skipped.keys()
    if "13" in wanted and (needs := why_no_hosts()):
        skipped["13"] = needs  # its saved outputs are those of a machine that can
    for item in items:
        if item.path.suffix == ".ipynb" and (reason := skipped.get(item.path.name[:2])):
            item.add_marker(pytest.mark.skip(reason=reason))
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def pytest_collection_finish(session):
    """Build the docs corpus before a notebook does: its progress bar would be an output nobody saved."""
    if any(item.path.suffix == ".ipynb" for item in session.items):
        load_corpus()


def pytest_runtest_logreport(report):
    file = report.nodeid.partition("::")[0]
    spent[file if file.endswith(".ipynb") else report.nodeid.partition("@")[0]] += report.duration


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("the ten slowest: tests, and notebooks with all their cells")
    for name, seconds in spent.most_common(10):
        terminalreporter.line(f"{seconds:7.1f} s  {name}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if is_worker(session.config):
        return
    deadline = time.monotonic() + 15
    while (left := leftovers(os.environ[MARK])) and time.monotonic() < deadline:
        time.sleep(0.5)
    if left:
        print("\nprocesses left behind:", *(f"{p.pid} {' '.join(p.cmdline())[:150]}" for p in left), sep="\n  ")
        session.exitstatus = 1
        for process in left:
            process.kill()
