"""Screenshots for the README, of the book and of JupyterLab with the output of two ranks: figures/book.png, lab.png.

    make screenshots      (make book comes first; Debian's chromium must be there)
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import index_of, is_idle, lab, open_notebook, page_in, run_cell, wait_for  # noqa: E402

WIDTH, HEIGHT = 1300, 800


def main():
    with page_in(WIDTH, HEIGHT) as page:
        page.goto((ROOT / "build" / "book" / "index.html").as_uri())
        shoot(page, "book")
    with tempfile.TemporaryDirectory() as folder, lab(Path(folder)) as address, page_in(WIDTH, HEIGHT) as page:
        page.goto(address)
        page.wait_for_selector(".jp-NotebookPanel")
        open_notebook(page, "00_start_here.ipynb")
        last = index_of(page, "%%px")
        for index in range(last + 1):
            run_cell(page, index)
        wait_for(lambda: is_idle(page), 120)
        page.evaluate(f"jupyterapp.shell.currentWidget.content.scrollToItem({last}, 'center')")
        page.wait_for_timeout(1000)
        shoot(page, "lab")


def shoot(page, name):
    target = ROOT / "figures" / f"{name}.png"
    page.screenshot(path=target)
    print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
