"""The book builds from what is saved, complains of what is broken, needs no network and is cut off nowhere."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import BROWSER, copied, page_in, pages, without_make_and_display

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip("sphinx", reason="the book is rendered in the environment of make setup")
TINY = "# Tiny\n\n```{toctree}\nother\n```\n\n![a figure](figure.png)\n\n[there](other.md#a-place)\n"
API = "\n```{eval-rst}\n.. automodule:: documented\n   :members:\n```\n"
DOCUMENTED = '''
def double(x):
    """Twice `x`.

    Parameters
    ----------
    x : int32 [pairs]
        What is doubled.

    Raises
    ------
    ValueError
        Never.
    """
'''


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
    command, environment = ["make", "--old-file=setup", target], without_make_and_display()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def tiny_book(folder, index):
    for name in ("conf.py", "gathered.py"):
        shutil.copy(ROOT / "book" / name, folder)
    (folder / "_static").mkdir()
    (folder / "index.md").write_text(index)
    (folder / "other.md").write_text("# Other\n\n## A place\n")
    shutil.copy(ROOT / "figures" / "many_ranks.png", folder / "figure.png")
    (folder / "documented.py").write_text(DOCUMENTED)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", ".", "out"]
    env = {**without_make_and_display(), "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_a_broken_link_image_or_anchor_fails_the_build(tmp_path):
    broken = ("no.png", "no.md", "no-anchor", "no-page")
    links = "![a figure](no.png) [file](no.md) [anchor](other.md#no-anchor)\n\n```{toctree}\nno-page\n```\n"
    done = tiny_book(tmp_path, TINY + links)
    assert done.returncode == 1
    assert [name for name in broken if name not in done.stderr] == []


def test_formulas_and_numpy_docstrings_are_read(tmp_path):
    done = tiny_book(tmp_path, TINY + r"The mean is $\frac{1}{n} \sum_i x_i$." + API)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<mfrac>" in page and "\\frac" not in page
    assert [name for name in ("Parameters", "int32 [pairs]", "Raises", "ValueError") if name not in page] == []
    assert "----" not in page


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
    assert items == said > 20
    assert 'href="../notebooks/15_parameter_server.html"' in boxes
    mistakes = (book / "docs" / "mistakes.html").read_text()
    assert "rank 0 has three times as many examples" in mistakes
    assert 'href="../notebooks/00_start_here.html"' in mistakes


def test_a_page_links_the_glossary_and_the_api_links_the_source(book):
    assert "../glossary.html#term-rank" in (book / "notebooks" / "09_horovod_word2vec.html").read_text()
    an_ordinary_word = re.compile(r'#term-size"><span[^>]*>size')
    assert [path.name for path in pages(book) if an_ordinary_word.search(path.read_text())] == []
    assert 'href="_modules/helpers/cluster/ranks.html#connect"' in (book / "api.html").read_text()


def test_no_page_takes_anything_from_the_network(book):
    fetched = re.compile(r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//")
    assert [path.name for path in pages(book) if fetched.search(path.read_text())] == []


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


def test_every_picture_is_said_in_words(book):
    wordless = re.compile(r'<img (?![^>]*alt="(?![^"]*[.](?:png|svg)")[^"]+")[^>]*>')  # Sphinx's default is the path
    found = {path.name: wordless.findall(path.read_text().partition("<article")[2]) for path in pages(book)}
    assert {name: images for name, images in found.items() if images} == {}


def test_the_tables_of_the_outputs_are_tables(book):
    assert [path.name for path in pages(book) if "| --- " in path.read_text()] == []


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
