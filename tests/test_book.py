"""The book builds from what is saved, complains of what is broken, and reads well in a browser."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import BROWSER, copied, page_in, pages, without_make_and_display

ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip("sphinx", reason="the book is rendered in the environment of make setup")
TINY = "# Tiny\n\n```{toctree}\nother\n```\n\n![a figure](figure.png)\n\n[there](other.md#a-place)\n"


def build(source, target):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(source), str(target)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The book as `make book` makes it, in a path with a space, without a display."""
    parts = ("book", "figures", "examples", "helpers", "README.md", "notebooks")
    folder = copied(tmp_path_factory.mktemp("a book"), *parts)
    command, environment = ["make", "--old-file=setup", "book"], without_make_and_display()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "book"


def tiny_book(folder, index):
    shutil.copy(ROOT / "book" / "conf.py", folder)
    (folder / "_static").mkdir()
    (folder / "index.md").write_text(index)
    (folder / "other.md").write_text("# Other\n\n## A place\n")
    shutil.copy(ROOT / "figures" / "loss_per_rank.png", folder / "figure.png")
    return build(folder, folder / "out")


def test_a_broken_link_image_or_anchor_fails_the_build(tmp_path):
    broken = ("no.png", "no.md", "no-anchor", "no-page")
    links = "![a figure](no.png) [file](no.md) [anchor](other.md#no-anchor)\n\n```{toctree}\nno-page\n```\n"
    done = tiny_book(tmp_path, TINY + links)
    assert done.returncode == 1
    assert [name for name in broken if name not in done.stderr] == []


def test_every_notebook_has_its_page_and_its_minutes(book):
    start = (book / "index.html").read_text()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert (book / "notebooks" / f"{path.stem}.html").exists()
        assert f'href="notebooks/{path.stem}.html"' in start.partition("start-map")[2]


def test_a_page_links_the_glossary_and_the_api_links_the_source(book):
    assert "../glossary.html#term-rank" in (book / "notebooks" / "05_horovod_word2vec.html").read_text()
    assert 'href="_modules/helpers/cluster/ranks.html#connect"' in (book / "api.html").read_text()


CUT_OFF = """[...document.querySelectorAll('.bd-article pre, .bd-article table, .bd-article img')].filter(e => {
    const edge = document.querySelector('.bd-article').getBoundingClientRect().right + 1
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
    return e.getBoundingClientRect().right > edge || (e.scrollWidth > e.clientWidth + 1 && !scrolls)
}).map(e => e.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def page():
    with page_in(1300) as page:
        yield page


@BROWSER
def test_every_page_loads_whole_and_nothing_is_cut_off(book, page):
    """On a laptop, narrowed to a phone and back; code or a table that is too wide has a scroll bar of its own."""
    for path in pages(book):
        page.said.clear()
        page.goto(path.as_uri())
        for width in (390, 1300):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(CUT_OFF) == [], path
        assert page.said == [], path


@BROWSER
def test_search_finds_a_word_and_a_solution_unfolds(book, page):
    page.goto(f"{(book / 'search.html').as_uri()}?q=allreduce")
    page.wait_for_selector("#search-results li a")
    assert "Collectives" in page.inner_text("#search-results")
    page.goto((book / "notebooks" / "05_horovod_word2vec.html").as_uri())
    solution = page.locator("details").first
    code = solution.locator("pre").first
    assert not code.is_visible()
    solution.locator("summary").click()
    assert code.is_visible()
    assert page.locator("button.copybtn").count() > 10
    assert page.locator("a.left-prev").count() == page.locator("a.right-next").count() == 1


@BROWSER
def test_the_book_has_a_dark_mode(book, page):
    page.goto((book / "index.html").as_uri())
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
