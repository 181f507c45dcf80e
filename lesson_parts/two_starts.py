"""Of lesson 27: the picture of two ranks that start apart, or with rank 0's weights."""

import matplotlib.pyplot as plt

from helpers.plots import COLORS, SERIAL


def draw_starts(without, with_it, distances):
    """Draw how many held-out images are right, and how far the ranks are apart, epoch by epoch.

    Parameters
    ----------
    without : sequence of int [2, epochs + 1]
        Without the broadcast, of each rank the images right after 0, 1, ... epochs.
    with_it : sequence of int [epochs + 1]
        With the broadcast, the same on both ranks.
    distances : sequence of float [2, epochs + 1]
        The largest difference of a weight between the ranks: without the broadcast, and with it.
    """
    last = len(with_it) - 1
    lines = [
        ("with the broadcast", with_it, SERIAL),
        ("without, rank 0", without[0], COLORS[0]),
        ("without, rank 1", without[1], COLORS[1]),
    ]
    _, (top, bottom) = plt.subplots(2, figsize=(7, 6), sharex=True)
    for place, (label, right, color) in enumerate(lines):
        top.plot(right, "o-", color=color)
        note = f"{label}: {right[1]} after epoch 1"
        top.text(last, 125 - 50 * place, note, color=color, ha="right", size=11)
    first, end = ([right[epoch] for _, right, _ in lines] for epoch in (1, last))
    top.set_title(f"{min(first)} to {max(first)} right after epoch 1, {min(end)} to {max(end)} after epoch {last}")
    top.set(ylim=(0, 420), ylabel="right, of 389 held-out images")

    labels = ("without the broadcast", "with the broadcast")
    for apart, label, color in zip(distances, labels, (COLORS[3], SERIAL), strict=True):
        bottom.plot(apart, "o-", color=color)
        bottom.text(last, apart[-1] + 0.07, f"{label}: {apart[-1]:.2f}", ha="right", size=11)
    bottom.set_title(f"Without the broadcast the ranks stay {distances[0][-1]:.2f} apart")
    bottom.set(ylim=(-0.05, 1), xlabel="epochs", xticks=range(last + 1), ylabel="a weight differs by up to")
    plt.show()
