"""Draw the figure of the book's start page from what a benchmark saved, readable on a phone.

    python tools/where_it_arrives.py    # benchmarks/results/words_per_second.json: figures/where_it_arrives.svg
"""

import json

from moving_pictures import ROOT, box, drawing, text

from helpers.plots import COLORS, SERIAL

RECORD = ROOT / "benchmarks" / "results" / "words_per_second.json"
SYSTEMS = {
    "blocks": ("the trainer of lesson 13", "rank", COLORS[0]),
    "threads": ("the trainer of lesson 13", "thread", COLORS[3]),
    "gensim": ("gensim", "thread", COLORS[2]),
    "canonical": ("the usual Horovod loop", "rank", SERIAL),
}
FULL = 190  # px of the longest bar


def draw():
    """Write the figure: a bar for each system, its speed as a multiple of gensim's, and the score of its vectors."""
    rows = [row for row in json.loads(RECORD.read_text(encoding="utf-8")) if row["system"] in SYSTEMS]
    (gensim,) = (row["words_per_s"] for row in rows if row["system"] == "gensim")
    fastest = max(row["words_per_s"] for row in rows)
    shapes = []
    for number, row in enumerate(rows):
        name, unit, color = SYSTEMS[row["system"]]
        y = 46 + 46 * number
        shapes.append(text(8, y, f"{name}, {row['ranks']} {unit}{'s' if row['ranks'] > 1 else ''}"))
        length = max(FULL * row["words_per_s"] / fastest, 1)
        shapes.append(box(8, y + 6, length, 18, color, "none"))
        score = "" if row["wordsim353"] is None else f", WordSim-353 {row['wordsim353']:.2f}"
        shapes.append(text(14 + length, y + 20, f"{row['words_per_s'] / gensim:.2g} x{score}"))
    times = [f"{row['words_per_s'] / gensim:.1f}" for row in rows if row["system"] == "blocks"]
    title = f"Words per second: {' and '.join(times)} times gensim"
    height = 36 + 46 * len(rows)
    (ROOT / "figures" / "where_it_arrives.svg").write_text(drawing(title, height, shapes), encoding="utf-8")


if __name__ == "__main__":
    draw()
