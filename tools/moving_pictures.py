"""Record four short runs on real ranks, and draw each as a film of SVG frames for the book.

    python tools/moving_pictures.py           # draw figures/moving_*.svg from what is recorded
    python tools/moving_pictures.py --record  # run on ranks first: benchmarks/results/moving_pictures.json

A film is one SVG file whose frames are groups; all but one are hidden. So it is a still where nothing moves it, as in
JupyterLab, and book/_static/stepper.js shows one frame after the other. The picture of the README moves by itself.
"""

import argparse
import json
import time
from html import escape
from pathlib import Path

from helpers.plots import COLORS

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "results" / "moving_pictures.json"
WIDTH = 390
BLUES = ["#ffffff", "#e3eef8", "#c9dff0", "#aecfe8", "#93bfe0"]  # by the number of ranks in a sum
STEPS = 8


# --- what the ranks do: each function runs on every rank and returns what it saw


def ring():
    """The ring of lesson 08; rank r starts with 10**r in each part, so that a sum tells who is in it."""
    import horovod.tensorflow as hvd
    import numpy as np

    from lesson_parts.ring import Sockets, ring_allreduce

    sockets = Sockets(hvd.rank(), hvd.size(), hvd.allgather_object)
    values = np.full(hvd.size(), 10.0 ** hvd.rank(), np.float32)
    watch = [values.copy()]
    ring_allreduce(sockets, values, watch)
    sockets.close()
    return [frame.astype(int).tolist() for frame in watch]


def alltoall():
    """Rank r has the numbers r0, r1, ...; number i goes to rank i."""
    import horovod.tensorflow as hvd
    import numpy as np

    before = 10 * hvd.rank() + np.arange(hvd.size())
    return before.tolist(), hvd.alltoall(before).numpy().tolist()


def steps(every, n_steps):
    """Local SGD on a small regression: n steps of a rank, an exchange every so many, when each part of a step ended."""
    import horovod.tensorflow as hvd
    import numpy as np

    rng = np.random.default_rng(hvd.rank())
    x = rng.normal(size=(2000, 400)).astype(np.float32)
    y = x @ np.ones((400, 400), np.float32) + rng.normal(size=(2000, 400)).astype(np.float32)
    weights = np.zeros((400, 400), np.float32)
    seen = []
    for step in range(-1, n_steps):  # the first one warms up
        began = time.monotonic()
        weights -= 0.2 * x.T @ (x @ weights - y) / len(x)
        computed = time.monotonic()
        if (step + 1) % every == 0:
            weights = hvd.allreduce(weights).numpy()
        seen.append({"began": began, "computed": computed, "ended": time.monotonic(), "left": weights[:8].copy()})
    return seen[1:]


def times_and_distance(runs):
    """What `steps` saw on both ranks: seconds from the first beginning, and how far apart the copies end each step."""
    import numpy as np

    first = min(run[0]["began"] for run in runs)
    spans = [[[round(step[key] - first, 5) for key in ("began", "computed", "ended")] for step in run] for run in runs]
    apart = [float(np.abs(one["left"] - two["left"]).max()) for one, two in zip(*runs, strict=True)]
    return {"spans": spans, "apart": apart}


def record():
    """Run all of it on ranks of this machine and save what they saw."""
    from helpers.cluster import connect
    from lesson_parts.straggler import slowed

    with connect(4, cluster=False) as ranks:
        runs = {"ring": ranks.run(ring), "alltoall": ranks.run(alltoall)}
    with connect(2, cluster=False) as ranks:
        runs["every step"] = times_and_distance(ranks.run(steps, 1, STEPS))
        runs["every 4 steps"] = times_and_distance(ranks.run(steps, 4, STEPS))
        with slowed(ranks.engines[1].pid, 3):
            runs["straggler"] = times_and_distance(ranks.run(steps, 1, STEPS))
    assert_as_said(runs)
    RECORD.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), **runs}) + "\n", encoding="utf-8")


def assert_as_said(runs):
    """Assert that the ring adds up, that the alltoall transposes, and that copies drift apart between exchanges."""
    import numpy as np

    ring = np.array(runs["ring"])  # [rank, frame, part]
    assert (ring == 1111).sum(axis=(0, 2)).tolist() == [0, 0, 0, 4, 8, 12, 16]
    before, after = (np.array([one[k] for one in runs["alltoall"]]) for k in (0, 1))
    assert np.array_equal(after, before.T)
    assert max(runs["every step"]["apart"]) == 0
    apart = runs["every 4 steps"]["apart"]
    assert apart[3] == apart[7] == 0 and min(apart[:3] + apart[4:7]) > 0


# --- how it is drawn


def text(x, y, words, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(str(words))}</text>'


def box(x, y, width, height, fill, stroke="#888"):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{stroke}"/>'


def film(title, height, frames, still):
    """An SVG file of (lines of a caption, shapes) pairs, a group each; the one with the number `still` is shown."""
    groups = []
    for number, (caption, shapes) in enumerate(frames):
        hidden = "" if number == still else ' display="none"'
        groups.append(f'<g class="frame"{hidden}>' + "".join([*shapes, *captioned(caption, height)]) + "</g>")
    return drawing(title, height, groups)


def moving(title, height, frames, seconds=12):
    """The same as a picture that goes through its frames by itself; where motion is to be reduced, it is the last."""
    last = len(frames) - 1
    share = 100 / (last + 3)  # the last frame stays three times as long
    style = [f".frame {{ visibility: hidden; animation: {seconds}s step-end infinite }}"]
    groups = []
    for number, (caption, shapes) in enumerate(frames):
        times = [f"{share * number:.2f}% {{ visibility: visible }}"]
        if number > 0:
            times.insert(0, "0% { visibility: hidden }")
        if number < last:
            times.append(f"{share * (number + 1):.2f}% {{ visibility: hidden }}")
        style.append(f"@keyframes frame{number} {{ {' '.join(times)} }}")
        style.append(f"#frame{number} {{ animation-name: frame{number} }}")
        inside = "".join([*shapes, *captioned(caption, height)])
        groups.append(f'<g class="frame" id="frame{number}">{inside}</g>')
    still = f".frame {{ animation: none }} #frame{last} {{ visibility: visible }}"
    style.append(f"@media (prefers-reduced-motion: reduce) {{ {still} }}")
    return drawing(title, height, ["<style>", *style, "</style>", *groups])


def captioned(lines, height):
    return [text(8, height - 30 + 18 * row, line, **{"class": "caption"}) for row, line in enumerate(lines)]


def drawing(title, height, groups):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        ' font-family="sans-serif" font-size="13" fill="#222">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text(8, 20, title, font_weight="bold"),
        *groups,
        "</svg>\n",
    ])  # fmt: skip


def rows(values, fill, top=36):
    """A row of boxes for each rank; fill(rank, column, value) is the colour of one."""
    shapes = []
    for rank, numbers in enumerate(values):
        y = top + 36 * rank
        shapes.append(text(8, y + 20, f"rank {rank}", fill=COLORS[rank], font_weight="bold"))
        for column, value in enumerate(numbers):
            x = 70 + 76 * column
            shapes.append(box(x, y, 70, 28, fill(rank, column, value)))
            shapes.append(text(x + 35, y + 19, value, text_anchor="middle"))
    return shapes


def ring_film(seen):
    def by_ranks_in_it(_rank, _column, value):
        return BLUES[str(value).count("1")]

    frames = []
    last = len(seen[0]) - 1
    for step in range(last + 1):
        values = [frames_of_rank[step] for frames_of_rank in seen]
        complete = sum(number == 1111 for row in values for number in row)
        half = last // 2
        if step == 0:
            name = "At first each rank has its own numbers: 1, 10, 100 or 1000."
        elif step <= half:
            name = f"Reduce-scatter, step {step} of {half}: a part goes right and is added."
        else:
            name = f"Allgather, step {step - half} of {half}: a finished part goes right."
        frames.append(([name, f"{complete} of 16 parts are complete (1111)."], rows(values, by_ranks_in_it)))
    return film("A ring allreduce of four ranks", 226, frames, still=2)


def alltoall_film(seen):
    before, after = zip(*seen, strict=True)
    n = len(before)

    def plain(*_):
        return "#ffffff"

    says = ["Before: rank 1 has 10, 11, 12, 13, and so on.", "Number i of each rank is for rank i."]
    frames = [(says, rows(before, plain))]
    for target in range(n):

        def for_target(_rank, column, _value, target=target):
            return "#fbe3d3" if column == target else "#ffffff"

        says = [f"What goes to rank {target}: its column.", f"It becomes the row {', '.join(map(str, after[target]))}."]
        frames.append((says, rows(before, for_target)))
    frames.append((["After: rows have become columns.", "One call did all of it at once."], rows(after, plain)))
    return film("An alltoall of four ranks", 226, frames, still=2)


def gantt(run, top, n_steps, until):
    """Bars of both ranks up to the end of a step: computing in the rank's colour, exchange and waiting in grey."""
    scale = (WIDTH - 80) / until
    shapes = []
    for rank, spans in enumerate(run["spans"]):
        y = top + 30 * rank
        shapes.append(text(8, y + 16, f"rank {rank}", fill=COLORS[rank], font_weight="bold"))
        for began, computed, ended in spans[:n_steps]:
            shapes.append(box(70 + scale * computed, y, max(scale * (ended - computed), 0.3), 22, "#cccccc", "none"))
            shapes.append(box(70 + scale * began, y, scale * (computed - began), 22, COLORS[rank], "white"))
    return shapes


def seconds(run, n_steps):
    return max(spans[n_steps - 1][2] for spans in run["spans"])


def local_frames(every, local):
    until = max(seconds(run, STEPS) for run in (every, local))
    frames = []
    for step in range(1, STEPS + 1):
        shapes = [text(8, 50, "an exchange in every step"), *gantt(every, 58, step, until)]
        shapes += [text(8, 142, "an exchange every 4 steps"), *gantt(local, 150, step, until)]
        says = [
            f"Step {step}: {1e3 * seconds(every, step):.0f} ms above, {1e3 * seconds(local, step):.0f} ms below.",
            f"The two copies are {every['apart'][step - 1]:.2g} apart above, {local['apart'][step - 1]:.2g} below.",
        ]
        frames.append((says, shapes))
    return frames


def straggler_film(run):
    until = seconds(run, STEPS)
    frames = []
    for step in range(1, STEPS + 1):
        waits = [sum(ended - computed for _, computed, ended in spans[:step]) for spans in run["spans"]]
        says = [
            f"Step {step}: {1e3 * seconds(run, step):.0f} ms; each step ends when rank 1 has come.",
            f"In the exchange: rank 0 {100 * waits[0] / seconds(run, step):.0f}% of its time, "
            f"rank 1 {100 * waits[1] / seconds(run, step):.0f}%.",
        ]
        frames.append((says, gantt(run, 40, step, until)))
    return film("Rank 1 runs a third of the time", 150, frames, still=STEPS - 1)


def draw():
    """Write the films."""
    seen = json.loads(RECORD.read_text(encoding="utf-8"))
    both = local_frames(seen["every step"], seen["every 4 steps"])
    local = "Two ranks: computing (colour), exchange (grey)", 252, both
    films = {
        "ring": ring_film(seen["ring"]),
        "alltoall": alltoall_film(seen["alltoall"]),
        "local_sgd": film(*local, still=STEPS - 1),
        "straggler": straggler_film(seen["straggler"]),
    }
    for name, film_of_run in films.items():
        (ROOT / "figures" / f"moving_{name}.svg").write_text(film_of_run, encoding="utf-8")
    (ROOT / "figures" / "ranks_at_work.svg").write_text(moving(*local), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="run on ranks first")
    if parser.parse_args().record:
        record()
    draw()
