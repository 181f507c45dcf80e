"""The book: every notebook as it was saved, rendered by Sphinx. `make book` builds it; nothing is executed."""

import importlib
import json
import re
from functools import partial
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).resolve().parent
ROOMS = ("text", "word2vec", "cluster", "exchange")

project = "Distributed word2vec you can watch running"
copyright = author = "the authors of the course"
html_title = "Distributed word2vec"
extensions = [
    "myst_nb", "sphinx_copybutton", "sphinx_togglebutton",
    "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode",
]
exclude_patterns = ["**/.ipynb_checkpoints"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]
nitpicky = True

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries = False

html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_search_summary = False  # it fetches pages, which a browser refuses for files
html_show_sourcelink = html_show_copyright = False
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": True,
    "search_as_you_type": False,
}
copybutton_exclude = ".linenos, .gp, .go"


class GlossaryLinks(SphinxPostTransform):
    """Link the first use of each word of the glossary on a page, if it stands in a sentence."""

    default_priority = 5
    formats = ("html",)

    def run(self):
        if self.env.docname.split("/")[0] != "notebooks":
            return
        terms = self.env.get_domain("std")._terms
        forms = {form: term for term in terms for form in (term, f"{term}s")}
        words = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
        pattern, seen = re.compile(rf"\b({words})\b", re.IGNORECASE), set()
        for text in list(self.document.findall(nodes.Text)):
            if any(isinstance(parent, STOPS) for parent in parents(text)):
                continue
            parts, rest = [], str(text)
            for match in pattern.finditer(rest):
                term = forms[match[0].lower()]
                if term not in seen:
                    seen.add(term)
                    parts.append((match.start(), match.end(), term))
            if parts:
                text.parent.replace(text, linked(rest, parts))


STOPS = (nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.raw, addnodes.pending_xref, nodes.math)


def parents(node):
    while node := node.parent:
        yield node


def linked(text, parts):
    """Text nodes and links to the glossary, for parts (start, end, term) of a text."""
    found, done = [], 0
    for start, end, term in parts:
        reference = addnodes.pending_xref(
            "", nodes.inline(text=text[start:end]), refdomain="std", reftype="term", reftarget=term, refexplicit=True
        )
        found += [nodes.Text(text[done:start]), reference]
        done = end
    return [*found, nodes.Text(text[done:])]


def fill_in(app, docname, source):
    """The map of the start page comes from the notebooks, the page of the rooms from what each of them exports."""
    if docname == "index":
        source[0] = source[0].replace("%MAP%", map_of_notebooks())
    elif docname == "api":
        source[0] = source[0].replace("%ROOMS%", "\n\n".join(map(room, ROOMS)))


def map_of_notebooks():
    rows = ["| notebook | minutes |", "|---|---|"]
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        opening = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title = opening.partition("\n")[0].lstrip("# ")
        takes = re.search(r"(?:(\d+) min)? ?(?:(\d+) s)? on 2 cores", opening)
        if not takes:
            raise ValueError(f"{path.name} does not open with the minutes that it takes")
        seconds = 60 * int(takes[1] or 0) + int(takes[2] or 0)
        rows.append(f"| [{title}](notebooks/{path.name}) | {seconds / 60:.1f} |")
    return "\n".join(rows)


def room(name):
    """The page of a room: its functions and classes, module by module."""
    module, places = importlib.import_module(f"helpers.{name}"), {}
    for public in map(partial(getattr, module), module.__all__):
        if getattr(public, "__module__", "").startswith("helpers.") and hasattr(public, "__name__"):
            places.setdefault(public.__module__, []).append(public.__name__)
    parts = [f"## helpers.{name}\n\n{module.__doc__}"]
    for place, names in sorted(places.items()):
        directive = f".. automodule:: {place}\n   :members: {', '.join(names)}"
        parts.append(f"### {place.rpartition('.')[2]}\n\n```{{eval-rst}}\n{directive}\n```")
    return "\n\n".join(parts)


def as_markdown_writes_it(app, what, name, obj, options, lines):
    """Our docstrings are plain text: `code` in backquotes, indented code, and * and _ as they are."""
    text = "\n".join(lines)
    text = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", "\0\\1\0", text)
    pieces = text.split("\0")
    pieces[::2] = [re.sub(r"([*|])|_(?=\W|$)", lambda match: "\\" + match[0], piece) for piece in pieces[::2]]
    text = "".join(f"``{piece}``" if number % 2 else piece for number, piece in enumerate(pieces))
    text = re.sub(r"(?m)^((?!- ).*\S)\n(?=- )", r"\1\n\n", text)  # a blank line before a list, and after it
    text = re.sub(r"(?m)^(- .*(?:\n  .*)*)\n(?=[^- \n])", r"\1\n\n", text)
    lines[:] = re.sub(r"(?m)^((?!    |- ).*\S)\n\n(    )", r"\1\n\n::\n\n\2", text).split("\n")


def math_inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def math_block(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (math_inline, None), (math_block, None))
    app.add_post_transform(GlossaryLinks)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", as_markdown_writes_it)
