"""The words for a picture that stand on several lines are words in the book, too."""

import importlib.util
from pathlib import Path
from unittest.mock import Mock

import pytest

pytest.importorskip("myst_nb", reason="the book is rendered in the environment of make setup")
from docutils import nodes
from docutils.core import publish_doctree
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.docutils_ import Parser

CONF = Path(__file__).resolve().parent.parent / "book" / "conf.py"


def test_a_line_break_is_a_space_and_code_is_read(monkeypatch):
    monkeypatch.setattr(DocutilsRenderer, "renderInlineAsText", DocutilsRenderer.renderInlineAsText)  # undone after it
    spec = importlib.util.spec_from_file_location("conf", CONF)
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    conf.setup(Mock())
    page = publish_doctree("![All lie *near\nthe* `diagonal`\n& none [above](b.md).](a.png)", parser=Parser())
    assert page.next_node(nodes.image)["alt"] == "All lie near the diagonal & none above."
