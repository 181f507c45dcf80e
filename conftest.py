"""For `pytest tests` and `pytest --nbval notebooks`: a profile of its own, and no process left at the end."""

import os
import time
import uuid

import psutil
import pytest

from helpers.text.corpus import load_corpus

MARK = "W2V_TEST_SESSION"


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


def pytest_configure(config):
    os.environ.setdefault(MARK, uuid.uuid4().hex)
    os.environ["IPP_NONINTERACTIVE"] = "1"
    os.environ["PYTHONFAULTHANDLER"] = ""


@pytest.fixture(scope="session", autouse=True)
def _ipython_directory(tmp_path_factory):
    """No test meets the reader's own ipcluster or profile."""
    before = os.environ.get("IPYTHONDIR")
    os.environ["IPYTHONDIR"] = str(tmp_path_factory.mktemp("ipython"))
    yield
    if before is None:
        del os.environ["IPYTHONDIR"]
    else:
        os.environ["IPYTHONDIR"] = before


def pytest_collection_finish(session):
    """Build the docs corpus before a notebook does: its progress bar would be an output nobody saved."""
    if any(item.path.suffix == ".ipynb" for item in session.items):
        load_corpus()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    deadline = time.monotonic() + 15
    while (left := leftovers(os.environ[MARK])) and time.monotonic() < deadline:
        time.sleep(0.5)
    if left:
        print("\nprocesses left behind:", *(f"{p.pid} {' '.join(p.cmdline())[:150]}" for p in left), sep="\n  ")
        session.exitstatus = 1
        for process in left:
            process.kill()
