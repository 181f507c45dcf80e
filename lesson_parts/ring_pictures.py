"""For lesson 08: a ring's steps as a picture, and Horovod's timeline, read from its file and drawn."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from lesson_parts.collectives import cells
from lesson_parts.timeline import timeline_events

PHASES = {
    "NEGOTIATE_ALLREDUCE": "negotiation",
    "MEMCPY_IN_FUSION_BUFFER": "copying in",
    "GLOO_ALLREDUCE": "transfer",
    "MPI_ALLREDUCE": "transfer",
    "MEMCPY_OUT_FUSION_BUFFER": "copying out",
}
SHADES = {"negotiation": "#bbbbbb", "copying in": "#e6ab02", "transfer": "#1b1b1b", "copying out": "#a6761d"}


def draw_frames(frames, titles):
    """Draw what four ranks hold at first and after each of six steps, a row for each rank.

    Parameters
    ----------
    frames : array of int, [4 ranks, 7 frames, 4 parts]
        Sums of 1, 10, 100 and 1000, the numbers of the ranks. The more of them are in a sum, the darker it is.
    titles : list of str
        Of the frames.
    """
    blues = {}  # a number that is no sum stays grey
    for number in np.unique(frames).tolist():
        ranks_in_it = str(number).count("1")
        if ranks_in_it > 1:
            blues[number] = plt.cm.Blues(0.06 + 0.23 * ranks_in_it)
    _, axes = plt.subplots(3, 3, figsize=(5.2, 4.8))
    for ax in axes.flat:
        ax.axis("off")
    for frame, ax in enumerate([axes[0, 0], *axes[1], *axes[2]]):
        ax.set(xlim=(0, 4), ylim=(-3.1, 0.9))
        ax.set_title(titles[frame], size=10)
        for rank in range(4):
            cells(ax, rank, 0, frames[rank, frame], blues)


# ---- Horovod's timeline


def timeline_spans(path):
    """Read a timeline.

    Parameters
    ----------
    path : str or Path
        What `hvd.start_timeline` has written. It may lack its end.

    Returns
    -------
    list of [str, str, float, float]
        Tensor, what Horovod does with it, begin and end in ms from the first begin on; what ended first comes first.
    """
    names, begun, spans = {}, {}, []
    for event in timeline_events(path):
        lane = event.get("pid")
        if event.get("name") == "process_name":
            names[lane] = event["args"].get("name", "")
        elif event["ph"] == "B":
            begin = event["name"], event["ts"] / 1e3
            begun.setdefault(lane, []).append(begin)
        elif event["ph"] == "E" and begun.get(lane):
            what, start = begun[lane].pop()
            spans.append([names[lane], what, start, event["ts"] / 1e3])
    first = min((start for _, _, start, _ in spans), default=0)
    return [[name, what, a - first, b - first] for name, what, a, b in spans]


def phase_spans(path):
    """Read the phases of each tensor's allreduce from a timeline: `timeline_spans`, but only the phases of SHADES."""
    return [[tensor, PHASES[what], start, end] for tensor, what, start, end in timeline_spans(path) if what in PHASES]


def without_overlap(spans, kind=None):
    """Make one of what overlaps.

    Parameters
    ----------
    spans : list
        As `phase_spans` returns it.
    kind : str, optional
        A phase; without it all phases count.

    Returns
    -------
    list of [float, float]
        Begin and end in ms, in order.
    """
    result = []
    for start, end in sorted(span[2:] for span in spans if kind in (None, span[1])):
        if result and start < result[-1][1]:
            result[-1][1] = max(end, result[-1][1])
        else:
            result.append([start, end])
    return result


def spans_of_steps(spans, first, last):
    """Choose the spans of some steps, of which the first has number 1; in each step every tensor travels once."""
    tensors = len({tensor for tensor, *_ in spans})
    transfers = sorted(start for _, what, start, _ in spans if what == "transfer")

    def end_of(step):
        following = [*transfers, np.inf][step * tensors]  # the first transfer of the next step begins
        ends = [end for _, what, start, end in spans if what in ("transfer", "copying out") and start < following]
        return max(ends, default=0)

    begin, end = end_of(first - 1), end_of(last)
    return [span for span in spans if begin <= span[2] < end]


def draw_timeline(ax, spans, first=2, last=3):
    """Draw some steps, a row for each tensor in the order of the transfers, time from left to right.

    Parameters
    ----------
    ax : of matplotlib
    spans : list
        As `phase_spans` returns it.
    first, last : int
        Steps; the first has number 1.
    """
    spans = spans_of_steps(spans, first, last)
    zero = min(start for _, _, start, _ in spans)
    moved = [tensor for tensor, what, _, _ in sorted(spans, key=lambda span: span[2]) if what == "transfer"]
    rows = {tensor: row for row, tensor in enumerate(dict.fromkeys(moved))}
    for kind, shade in SHADES.items():
        bars = [(rows[tensor], start - zero, end - start) for tensor, what, start, end in spans if what == kind]
        for row, left, width in bars:
            ax.add_patch(plt.Rectangle((left, row - 0.5), width, 1, color=shade, linewidth=0))
    ax.set(xlabel="ms", ylabel=f"{len(rows)} tensors", yticks=[], ylim=(-0.5, len(rows) - 0.5))
    ax.margins(x=0.01)
    ax.autoscale_view(scaley=False)  # also of the axes that share x


def phases_legend(ax):
    """Name the phases below an axis."""
    patches = [Patch(color=shade, label=kind) for kind, shade in SHADES.items()]
    ax.legend(handles=patches, fontsize=8, ncol=4, loc="upper center", bbox_to_anchor=(0.5, -0.25))
