"""For all tests."""

import contextlib
import signal

import psutil
import pytest
from browser import lab, page_in
from hypothesis import settings

# a shell starts its background jobs deaf to Ctrl-C, and what the tests start and interrupt would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says something about the machine, and nothing about the code
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def no_forker_left():
    """It would end with this process, after it was looked for what the tests left behind."""
    yield
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "helpers.cluster.forks" in child.cmdline():
                child.terminate()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where `make lab` lets one in, in a path with a space."""
    with lab(tmp_path_factory.mktemp("a course")) as address:
        yield address


@pytest.fixture(scope="module")
def page(address):
    """JupyterLab in a browser."""
    with page_in(1300) as page:
        page.set_default_timeout(60_000)
        page.goto(address)
        page.wait_for_selector(".jp-NotebookPanel")
        yield page
