"""Debian's Chromium, driven by Playwright, for the tests of the book and of JupyterLab."""

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = shutil.which("chromium")
BROWSER = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="there is no chromium (Debian: apt install chromium) or no playwright (it comes with make setup) here",
)
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
PATIENCE = 300  # seconds that anything may take on a busy machine


@contextmanager
def page_in(width, height=900):
    """A page of this width; page.said: what it complained of, errors of the console and resources that are missing."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(1000 * PATIENCE)
        page.said = []
        page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
        page.on("requestfailed", lambda request: page.said.append(request.url))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        yield page
        browser.close()


def pages(book):
    """Every page of a book but those of the source."""
    return sorted(path for path in book.rglob("*.html") if not path.relative_to(book).parts[0].startswith("_"))


def copied(parent, *names):
    """A folder below `parent`, its name with a space: the Makefile, these files and folders, and a link to .venv."""
    folder = parent / "with a space"
    folder.mkdir()
    for name in ("Makefile", *names):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def without_make_and_display():
    """For a test that calls `make`: not as a part of `make test`, and as on a machine without a screen."""
    hidden = ("MAKE", "DISPLAY", "WAYLAND_DISPLAY")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def command_of(process):
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def environment_of(process):
    try:
        return process.environ()
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return {}
