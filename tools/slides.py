"""The core lessons as talks: build/slides/NN_topic.html, of the cells that are marked. Needs no network.

The marks are nbconvert's, `metadata.slideshow.slide_type`: "slide" and "subslide" begin a slide, "-" goes on with it,
"fragment" comes one key later, "notes" is for the speaker. A cell without a mark is left out. Of a marked text a slide
shows the core; the rest goes to the notes. Code whose result is a plot or a table is left out.
"""

import base64
import re
import sys
from pathlib import Path

import nbformat
from docutils.utils.math.latex2mathml import tex2mathml
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell

ROOT = Path(__file__).resolve().parent.parent
BEGINS = {"slide", "subslide"}
BLOCK = re.compile(r"^```[\s\S]*?^```|(?:^[^\n]+\n?)+", re.MULTILINE)  # code, or lines up to an empty one
DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
HEADING = re.compile(r"#+ .*")
WHOLE = re.compile(r"#|!\[|\||```|\$\$|    ")  # shown as they are: headings, pictures, tables, code, formulas
ITEM = re.compile(r"^(?:-|\d+[.]) ", re.MULTILINE)
SENTENCE_ENDS = re.compile(r"[.?!][*\")]*(?=\s+[^a-z]|$)")
LINK = re.compile(r"(?<!!)\[([^]]*)\]\([^)]*\)")
DRAWING = re.compile(r'src="../figures/([^"]+[.]svg)"')
FORMULA = re.compile(r"(`[^`]*`)|\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)


def slide_type(cell):
    """The mark of a cell, or "skip"."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "skip")


def talk(notebook):
    """Leave in a notebook what its slides show, each slide with a heading, and what the speaker may say."""
    heading, cells = "", []
    for cell in notebook.cells:
        kind = slide_type(cell)
        is_text = cell.cell_type == "markdown"
        shown, said = core(cell.source, kind in BEGINS) if is_text and kind != "notes" else (cell.source, "")
        if kind in BEGINS and not (is_text and HEADING.match(shown)):
            cells.append(marked(f"### {heading}", kind))
            kind = "-"
        if is_text:
            heading = ([heading] + [found.lstrip("# ") for found in HEADING.findall(cell.source)])[-1]
        elif any({"image/png", "text/markdown"} & set(output.get("data", {})) for output in cell.outputs):
            cell.metadata.transient = {"remove_source": True}  # as nbconvert calls it
            for output in cell.outputs:
                output.setdefault("metadata", {})["image/png"] = {"alt": f"Plot: {heading}"}
        if kind != "skip":
            cell.source = plain(shown) if is_text else shown
            cell.metadata.slideshow = {"slide_type": kind}
            cells.append(cell)
            cells += [marked(plain(said), "notes")] if said else []
    notebook.cells = cells


def marked(text, kind):
    """A new cell of text with a mark."""
    return new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})


def core(text, begins):
    """What a slide shows of a text, and the rest: of the section that it begins, or of what stands above a heading."""
    blocks = [block.strip("\n") for block in BLOCK.findall(DETAILS.sub("", text))]
    headings = [place for place, block in enumerate(blocks) if HEADING.match(block)] + [len(blocks)] * 2
    first, last = headings[:2] if begins and headings[0] < len(blocks) else (0, headings[0])
    shown, once = [], set()  # one picture, and of the prose one paragraph
    for block in blocks[first:last]:
        kind = "picture" if block.startswith("![") else "whole" if WHOLE.match(block) else "prose"
        if ITEM.match(block):
            shown.append("\n".join(f"- {beginning(item, room=170)}" for item in ITEM.split(block)[1:]))
        elif kind == "whole" or (kind not in once and not block.startswith(">")):
            once.add(kind)
            shown.append(beginning(block) if kind == "prose" else block)
    said = blocks[:first] + [block for block in blocks[first:last] if not WHOLE.match(block)]
    return "\n\n".join(shown), "\n\n".join(said)


def beginning(text, room=240):
    """As many sentences as there is room for, in characters; one at least."""
    ends = [match.end() for match in SENTENCE_ENDS.finditer(text) if match.end() > 25] or [len(text)]
    short = text[: max([end for end in ends if end <= room] or ends[:1])]
    return short + "**" * (short.count("**") % 2)


def plain(text):
    """Without links, which lead nowhere from a slide, and with formulas as MathML."""
    return FORMULA.sub(mathml, LINK.sub(r"\1", text.replace(" · [all lessons](../README.md#the-lessons)", "")))


def mathml(match):
    """A formula, or code as it is."""
    code, block, inline = match.groups()
    return code or tex2mathml(block or inline, as_block=bool(block)).replace("\n", " ")


def within(match):
    """The source of a drawing as a part of the page."""
    drawing = (ROOT / "figures" / match[1]).read_bytes()
    return f'src="data:image/svg+xml;base64,{base64.b64encode(drawing).decode()}"'


def render(path, folder):
    """Write the slides of a notebook; returns the file, or None if no cell is marked."""
    notebook = nbformat.read(path, as_version=4)
    if all(slide_type(cell) == "skip" for cell in notebook.cells):
        return None
    talk(notebook)
    exporter = SlidesExporter(extra_template_basedirs=[str(ROOT / "tools")], template_name="slides")
    exporter.exclude_anchor_links = True
    page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{path.stem}.html").write_text(DRAWING.sub(within, page), encoding="utf-8")
    return folder / f"{path.stem}.html"


def main():
    """Render every notebook that has marks."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if page := render(path, ROOT / "build" / "slides"):
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
