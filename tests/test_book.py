"""The book builds from what is saved, complains of what is broken, needs no network and is cut off nowhere."""

import re
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import BROWSER, copied, page_in, pages, without_make_and_display

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip("sphinx", reason="the book is rendered in the environment of make setup")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the book is made of, in a path with a space."""
    parts = ("book", "figures", "examples", "helpers", "docs", "README.md", "notebooks")
    return copied(tmp_path_factory.mktemp("a book"), *parts)


@pytest.fixture(scope="module")
def book(folder):
    """The book as `make book` makes it, without a display."""
    made(folder, "book")
    return folder / "build" / "book"


def made(folder, target):
    """Pages that another target of this folder has read are not read again."""
    command = ["make", "--old-file=setup", "SPHINXOPTS=-d build/doctrees", target]
    environment = without_make_and_display()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_broken_link_image_or_anchor_fails_the_build():
    """Sphinx ends with an error at any warning but of three kinds that are not about links."""
    assert "-m sphinx -q -W --keep-going" in (ROOT / "Makefile").read_text()
    settings = (ROOT / "book" / "conf.py").read_text().splitlines()
    assert "nitpicky = True" in settings
    assert 'suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "epub.unknown_project_files"]' in settings


def test_formulas_and_numpy_docstrings_are_read(book):
    lesson = (book / "notebooks" / "05_nce_vs_softmax.html").read_text()
    assert "<mfrac>" in lesson and "\\frac" not in lesson
    api = (book / "api.html").read_text()
    assert [name for name in ("Parameters", "int array [n]", "Raises", "ValueError") if name not in api] == []
    assert "----" not in api


def test_every_notebook_has_its_page_and_its_time(book):
    table = (book / "docs" / "lessons.html").read_text().partition("<tbody>")[2]
    rows = table.partition("</tbody>")[0].split("</tr>")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert (book / "notebooks" / f"{path.stem}.html").exists()
        row = next(row for row in rows if f'href="../notebooks/{path.stem}.html"' in row)
        assert re.search(r"<p>(\d+ min ?)?(\d+ s)?</p>", row)


def test_the_boxes_and_the_mistakes_have_a_page_each(book):
    boxes = (book / "docs" / "you_may_have_read.html").read_text()
    said = sum(path.read_text().count("> **You may have read**") for path in (ROOT / "notebooks").glob("*.ipynb"))
    items = boxes.partition('<article class="bd-article"')[2].partition("</article>")[0].count("<li>")
    assert items == said > 20 and boxes.count("You may have read") > said
    assert 'href="../notebooks/15_parameter_server.html"' in boxes
    mistakes = (book / "docs" / "mistakes.html").read_text()
    assert "rank 0 has three times as many examples" in mistakes
    assert "Compute the right one." in mistakes and '<span class="pre">1.75</span>' in mistakes
    assert 'href="../notebooks/00_start_here.html"' in mistakes


def test_a_page_links_the_glossary_and_the_api_links_the_source(book):
    assert "../glossary.html#term-rank" in (book / "notebooks" / "09_horovod_word2vec.html").read_text()
    assert 'href="_modules/helpers/cluster/ranks.html#connect"' in (book / "api.html").read_text()


@pytest.mark.parametrize(
    ("begin", "pattern"),
    [
        pytest.param("<html", r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//",
                     id="anything from the network"),
        # Sphinx's default for the words is the path
        pytest.param("<article", r'<img (?![^>]*alt="(?![^"]*[.](?:png|svg)")[^"]+")[^>]*>',
                     id="a picture that is not said in words"),
        pytest.param("<article", r"\| --- ", id="a table of an output that is no table"),
        pytest.param("<article", r'#term-size"><span[^>]*>size', id="an ordinary word that is linked to the glossary"),
    ],
)
def test_no_page_has(book, begin, pattern):
    found = {path.name: re.findall(pattern, path.read_text().partition(begin)[2]) for path in pages(book)}
    assert {name: places for name, places in found.items() if places} == {}


def test_the_e_book_is_well_formed(folder):
    """A reader of e-books refuses a page that is no XML."""
    made(folder, "epub")
    with zipfile.ZipFile(folder / "build" / "epub" / "distributed_word2vec.epub") as whole:
        pages = [name for name in whole.namelist() if name.endswith(".xhtml")]
        for name in pages:
            ElementTree.fromstring(whole.read(name))
    assert {f"notebooks/{path.stem}.xhtml" for path in (ROOT / "notebooks").glob("*.ipynb")} < set(pages)


CUT_OFF = """[...document.querySelectorAll('.bd-article pre, .bd-article table, .bd-article img')].filter(e => {
    const edge = document.querySelector('.bd-article').getBoundingClientRect().right + 1
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
    return e.getBoundingClientRect().right > edge || (e.scrollWidth > e.clientWidth + 1 && !scrolls)
}).map(e => e.outerHTML.slice(0, 200))"""


# What is laid out as an ordinary box shows its symbols one below the other.
NOT_AS_A_FORMULA = """[...document.querySelectorAll('math')].filter(e => !getComputedStyle(e).display.includes('math'))
    .map(e => e.textContent)"""


@BROWSER
@pytest.mark.browser
def test_every_page_loads_whole_and_nothing_is_cut_off(book):
    """On a laptop and narrowed to a phone; code or a table that is too wide has a scroll bar of its own."""
    with page_in(1300) as page:
        for path in pages(book):
            page.said.clear()
            page.goto(path.as_uri())
            for width in (390, 1300):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
                assert page.evaluate(CUT_OFF) == [], path
            assert page.evaluate(NOT_AS_A_FORMULA) == [], path
            assert page.said == [], path
