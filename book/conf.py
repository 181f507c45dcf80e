"""The book: every notebook as it was saved, rendered by Sphinx. `make book` builds it; nothing is executed."""

import ast
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

sys.path.insert(0, str(Path(__file__).parent))
from gathered import write_pages

project = "Distributed word2vec you can watch running"
copyright = author = "the authors of the course"
version = release = "0.1.0"  # an e-book wants one
html_title = "Distributed word2vec"
extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_togglebutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["**/.ipynb_checkpoints", "**/mine", "examples/README.md"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_render_markdown_format = "myst"  # the default, CommonMark, knows no tables
myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "epub.unknown_project_files"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # of the docstrings: types are words there, and need no target

default_role = "code"  # `name` in a docstring
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes in a list, not beside those that autodoc finds
napoleon_use_param = False  # parameters as a list, with their types as they are written
napoleon_use_rtype = False
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
epub_basename = "distributed_word2vec"
epub_show_urls = "no"
copybutton_exclude = ".linenos, .gp, .go"


def leave_out_of_the_contents(app, name, source):
    """The start page has what the README says; lessons link to it."""
    if name == "README":
        source[0] = "---\norphan: true\n---\n\n" + source[0]


class GlossaryLinks(SphinxPostTransform):
    """Link the first use of each word of the glossary on a page, if it stands in a sentence."""

    default_priority = 5
    formats = ("html",)

    def run(self):
        if not self.env.docname.startswith("notebooks/"):
            return
        terms = self.env.get_domain("std")._terms
        forms = {form: term for term in terms if term not in ALSO_ORDINARY for form in (term, f"{term}s")}
        forms |= {form: term for form, term in ALSO_MEANT.items() if term in terms}
        words = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
        pattern = re.compile(rf"\b({words})\b", re.IGNORECASE)
        seen = set()
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(parent, STOPS) for parent in parents(text)):
                # odd pieces are the words
                pieces = [
                    linked(piece, forms[piece.lower()], seen) if number % 2 else nodes.Text(piece)
                    for number, piece in enumerate(pattern.split(str(text)))
                ]
                text.parent.replace(text, pieces)


class NamesOfPlots(SphinxPostTransform):
    """Give each plot of a cell its titles, as the code has them, as the words for those who cannot see it."""

    default_priority = 6  # after myst_nb has chosen what of an output is shown

    def run(self):
        for cell in self.document.findall(nodes.container):
            code = cell.next_node(nodes.literal_block)  # the first one in a cell; the others are outputs
            if "cell" in cell["classes"] and code:
                for image in cell.findall(nodes.image):
                    image.setdefault("alt", name_of_plot(code.astext(), heading_above(cell)))


def heading_above(node):
    section = next(parent for parent in parents(node) if isinstance(parent, nodes.section))
    return section.next_node(nodes.title).astext()


def name_of_plot(code, otherwise):
    """The titles that a cell gives its axes, or else what stands above it."""
    tree = ast.parse("\n".join(line for line in code.splitlines() if not line.startswith("%")))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    titles = [word.value for call in calls for word in call.keywords if word.arg in ("title", "suptitle")]
    titles += [
        call.args[0]
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("set_title", "suptitle") and call.args
    ]
    found = [text for text in map(words_of, titles) if re.search("[a-z]", text)]
    return "Plot: " + ("; ".join(dict.fromkeys(found)) or otherwise)


def words_of(title):
    """What is known of a title before it runs; an ellipsis stands for what is computed."""
    if isinstance(title, ast.Constant):
        return str(title.value)
    if isinstance(title, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in title.values)
    return ""


def alt_text(renderer, tokens):
    """The words for a picture, on one line. MyST's own method joins lines without a space, and leaves code out."""
    said = [alt_text(renderer, token.children) or token.content or " " * ("break" in token.type) for token in tokens]
    return "".join(said)


ALSO_ORDINARY = {"size"}  # "the size of an array" is no number of ranks
ALSO_MEANT = {"world size": "size"}
STOPS = (nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.raw, addnodes.pending_xref, nodes.math)


def parents(node):
    while node := node.parent:
        yield node


def linked(word, term, seen):
    """A link to the glossary, or only the word when the page has had one for this term."""
    if term in seen:
        return nodes.Text(word)
    seen.add(term)
    target = {"refdomain": "std", "reftype": "term", "reftarget": term, "refexplicit": True}
    return addnodes.pending_xref("", nodes.inline(text=word), **target)


def mathml(node, as_block):
    """The formula; an e-book does not know HTML's names of characters."""
    return tex2mathml(node.astext(), as_block=as_block).replace("&ApplyFunction;", "&#x2061;")


def math_inline(translator, node):
    formula = mathml(node, as_block=False)
    wide = len(node.astext()) > 40  # characters of TeX: it may be wider than a phone, and no browser breaks it
    translator.body.append(f'<span class="wide-math">{formula}</span>' if wide else formula)
    raise nodes.SkipNode


def math_block(translator, node):
    translator.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (math_inline, None), (math_block, None))
    app.add_post_transform(GlossaryLinks)
    app.add_post_transform(NamesOfPlots)
    DocutilsRenderer.renderInlineAsText = alt_text
    app.connect("builder-inited", write_pages)
    app.connect("source-read", leave_out_of_the_contents)
