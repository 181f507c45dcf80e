"""For pytest on tests/ and notebooks/: what runs first, what is skipped, a profile of its own, no process left."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import psutil
import pytest

from helpers.text import load_corpus

MARK = "W2V_TEST_SESSION"
LEFT_BEHIND = 6  # exit code: pytest has 0 to 5
LARGE_GB = 8  # two lessons of more would not fit beside each other on a machine of 24 GB
SECONDS = {"slow": 30, "browser": 30, "hosts": 10, "ranks": 8, "servers": 8}  # about, of a test with this marker
spent = Counter()  # seconds of each test, and of each notebook all cells together


def pytest_configure(config):
    os.environ.setdefault(MARK, uuid.uuid4().hex)
    os.environ["IPP_NONINTERACTIVE"] = "1"
    os.environ["PYTHONFAULTHANDLER"] = ""
    if os.environ.get("CI") and not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit ends us with the summary
        config.pluginmanager.register(SaidAtOnce(config))
    if config.option.nbval_sanitize_with:  # nbval looks for it where pytest was called
        config.option.nbval_sanitize_with = str(config.rootpath / config.option.nbval_sanitize_with)
    config.folder = Path(tempfile.mkdtemp(prefix="tests-"))
    config.before = {name: os.environ.get(name) for name in ("IPYTHONDIR", "TMPDIR")}
    os.environ["IPYTHONDIR"] = str(config.folder / "ipython")  # no test or notebook meets the reader's own ipcluster
    os.environ["TMPDIR"] = str(config.folder)  # nbval kills its kernels: what TensorFlow has left there goes at the end


def pytest_unconfigure(config):
    shutil.rmtree(config.folder, ignore_errors=True)
    for name, value in config.before.items():
        del os.environ[name]
        if value is not None:
            os.environ[name] = value


# ---- what runs, and in which order


def is_cell(item):
    return item.path.suffix == ".ipynb"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Notebooks first, of each kind the long ones first, so that at the end no worker waits long for the other.

    The cells of a notebook and the tests of a file go to one worker, and so do the notebooks that need much memory.
    """
    seconds = Counter()
    for item in items:
        if is_cell(item):
            item.add_marker("slow")
            seconds[item.path] = seconds[item.path] or header_seconds(item.path)
        else:
            seconds[item.path] += max((SECONDS.get(marker.name, 0) for marker in item.iter_markers()), default=0)
        if config.pluginmanager.hasplugin("xdist"):
            is_large = is_cell(item) and header_gigabytes(item.path) > LARGE_GB
            item.add_marker(pytest.mark.xdist_group("large" if is_large else item.path.name))
    items.sort(key=lambda item: (not is_cell(item), -seconds[item.path]))


@functools.cache
def header(path):
    """The line of a lesson that says what it takes the machine."""
    found = re.search(r"\*\*It takes the machine\*\* about .*", path.read_text(encoding="utf-8"))
    return found[0] if found else ""


def header_gigabytes(path):
    found = re.search(r"(\d+\.\d) GB of memory", header(path))
    return float(found[1]) if found else 0


def header_seconds(path):
    found = re.search(r"about (?:(\d+) min)? ?(?:(\d+) s)?", header(path))
    return 60 * int(found[1] or 0) + int(found[2] or 0) if found else 90


def pytest_collection_finish(session):
    """Build the docs corpus before a notebook does: its progress bar would be an output nobody saved."""
    if any(map(is_cell, session.items)) and not session.config.option.collectonly:
        load_corpus(progress=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What this machine lacks: cells that need Gloo are skipped, outputs that need hosts are not compared."""
    if not is_cell(item):
        return
    item.output_timeout = 60  # nbval's 5 seconds for an output that the kernel has sent are few on a busy machine
    if "needs-gloo" in item.cell.metadata.get("tags", []) and not has_gloo():
        pytest.skip("this Horovod has no Gloo")
    if "laptop_cluster" in item.path.read_text(encoding="utf-8") and (needs := why_no_hosts()):
        item.options["check"] = False
        item.warn(pytest.PytestWarning(f"the outputs of this notebook are not compared: {needs}"))


@functools.cache
def has_gloo():
    program = "import horovod.tensorflow as hvd; raise SystemExit(not hvd.gloo_built())"
    return subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode == 0


@functools.cache
def why_no_hosts():
    """What this machine lacks for the saved outputs of lessons that make hosts; "" if nothing."""
    from laptop_cluster import HostsUnavailable, hosts

    try:
        with hosts(1):
            return "" if shutil.which("slurmctld") else "Slurm is not installed"
    except HostsUnavailable as error:
        return str(error)


# ---- what a cell said, what it took, and what it left behind


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the stderr of a cell that failed: nbval says only that there was some."""
    report = yield
    if report.failed and is_cell(item):
        streams = [output for output in item.test_outputs or [] if output.output_type == "stream"]
        if said := "".join(stream.text for stream in streams if stream.name == "stderr"):
            report.sections.append(("stderr of the cell", said))
    return report


def pytest_runtest_logreport(report):
    file = report.nodeid.partition("::")[0]
    spent[file if file.endswith(".ipynb") else report.nodeid.partition("@")[0]] += report.duration


class SaidAtOnce:
    """What failed, and how long it has taken so far: a run that its time limit ends may show no summary."""

    def __init__(self, config):
        self.config = config
        self.began = time.monotonic()
        self.minutes = 0

    def pytest_runtest_logreport(self, report):
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        minutes = int(time.monotonic() - self.began) // 60
        if report.failed:
            reporter.write_line(f"\nfailed after {minutes} min: {report.nodeid}\n{report.longreprtext[-2000:]}")
        if minutes >= self.minutes + 10:
            self.minutes = minutes
            reporter.write_line(f"\n{minutes} minutes so far")
        reporter.write("", flush=True)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("the ten slowest: tests, and notebooks with all their cells")
    for name, seconds in spent.most_common(10):
        terminalreporter.line(f"{seconds:7.1f} s  {name}")


def leftovers(mark):
    """{process: its command} of what this session started (it inherits the mark) and is still there.

    Without xdist the tests run in this process, and what removes their folders at its end waits for it.
    """
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            ours = process.environ().get(MARK) == mark and process.pid != os.getpid()
            if not ours or process.status() == psutil.STATUS_ZOMBIE:
                continue
            command = " ".join(process.cmdline())
            ends_with_us = process.ppid() == os.getpid() and "-m helpers.cluster.processes" in command
            if not ends_with_us:
                found[process] = command[:150]
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workerinput"):  # one of those of `pytest -n 2`: the one that started it looks
        return
    deadline = time.monotonic() + 30
    while (left := leftovers(os.environ[MARK])) and time.monotonic() < deadline:
        time.sleep(0.5)
    if left:
        print("\nprocesses left behind:")
        print(*(f"  {process.pid} {command}" for process, command in left.items()), sep="\n")
        session.exitstatus = LEFT_BEHIND
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
