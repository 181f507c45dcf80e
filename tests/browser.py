"""Debian's Chromium, driven by Playwright, for the tests of the book and of JupyterLab."""

import shutil
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium")
BROWSER = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="there is no chromium (Debian: apt install chromium) or no playwright (it comes with make setup) here",
)
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


@contextmanager
def page_in(width, height=900):
    """A page of this width; page.said: what it complained of, errors of the console and resources that are missing."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.said = []
        page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
        page.on("requestfailed", lambda request: page.said.append(request.url))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        yield page
        browser.close()


def pages(book):
    """Every page of a book but those of the source."""
    return sorted(path for path in book.rglob("*.html") if not path.relative_to(book).parts[0].startswith("_"))
