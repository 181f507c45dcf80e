"""One look for every figure of the course."""

import matplotlib.pyplot as plt

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # rank 0 to 3; they stay apart for colour-blind readers
SERIAL = "#555555"  # whatever runs in one process


def use_style():
    """Set matplotlib's defaults for a notebook: size, resolution, grid, the colours of the ranks."""
    plt.rcParams.update(
        {
            "figure.figsize": (7, 3.5),
            "figure.dpi": 90,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": plt.cycler(color=COLORS),
            "axes.grid": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "grid.alpha": 0.3,
            "legend.frameon": False,
            "font.size": 10,
        }
    )
