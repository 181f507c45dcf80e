"""For lessons 28 and 31: the most memory of a step, and bars of what it consists of."""

import gc
import re
from pathlib import Path

import numpy as np
from matplotlib.patches import Patch

CLEAR_REFS = Path("/proc/self/clear_refs")


def forget_peak():
    """Let the peak that `peak_memory` returns begin anew, at what is there now."""
    gc.collect()
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # proc(5): resets the peak of the resident memory


def peak_memory():
    """Return the most memory of this process since `forget_peak`, in bytes.

    It is Linux's VmHWM, and nan on a Mac.
    """
    if not CLEAR_REFS.exists():
        return np.nan
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def peak_of(work):
    """Call work(), and measure the most memory on top of what was there.

    Returns
    -------
    object
        What work returned.
    float
        MB; nan on a Mac.
    """
    forget_peak()
    before = peak_memory()
    result = work()
    return result, (peak_memory() - before) / 1e6


def stacked_bars(ax, bars, parts, colors):
    """Draw a bar of several parts for each name, its sum at its end, and what the parts are below.

    bars: {name: its sizes, as many as parts; nan is left out}. parts: their names. colors: theirs.
    """
    for name, sizes in bars.items():
        left = 0
        for size, color in zip(np.nan_to_num(sizes), colors):
            ax.barh(name, size, left=left, color=color)
            left += size
        ax.text(left, name, f" {left:.0f}", va="center")
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(False)
    patches = [Patch(color=color, label=part) for part, color in zip(parts, colors)]
    ax.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=len(parts), frameon=False)
