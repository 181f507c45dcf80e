"""Of lesson 27: the picture of two ranks that start apart, or with rank 0's weights; its tables."""

import matplotlib.pyplot as plt

from helpers.plots import COLORS, SERIAL, table


def draw_starts(without, with_it, never, once):
    """Draw how many held-out images are right, and how far the ranks are apart, epoch by epoch.

    Parameters
    ----------
    without, with_it : sequence of (list, list of int) [2]
        Of each rank its weights, a list of arrays, and how many images are right, both after 0, 1, ... epochs: without
        the broadcast, and with it.
    never, once : sequence of float [epochs + 1]
        The largest difference between a weight on rank 0 and the same weight on rank 1, after 0, 1, ... epochs: without
        the broadcast, and with it.
    """
    without, with_it = [right for _, right in without], with_it[0][1]
    last = len(with_it) - 1
    lines = [
        ("with the broadcast", with_it, SERIAL),
        ("without, rank 0", without[0], COLORS[0]),
        ("without, rank 1", without[1], COLORS[1]),
    ]
    _, (top, bottom) = plt.subplots(2, figsize=(7, 6), sharex=True)
    for place, (label, right, color) in enumerate(lines):
        top.plot(right, "o-", color=color)
        top.text(last, 125 - 50 * place, label, color=color, ha="right", size=11)
    top.set_title(
        f"After epoch 1: {without[0][1]} and {without[1][1]} right without the broadcast, {with_it[1]} with it",
        size=11,
    )
    top.set(ylim=(0, 420), ylabel="right, of 389 held-out images")

    labels = ("without the broadcast", "with the broadcast")
    for distance, label, color in zip((never, once), labels, (COLORS[3], SERIAL), strict=True):
        bottom.plot(distance, "o-", color=color)
        bottom.text(last, distance[-1] + 0.07, f"{label}: {distance[-1]:.2f}", ha="right", size=11)
    bottom.set_title(f"Without the broadcast the ranks stay {never[-1]:.2f} apart")
    bottom.set(ylim=(-0.05, 1), xlabel="epochs", xticks=range(last + 1), ylabel="a weight differs by up to")
    plt.show()


def accuracies_of(found, mean_of_means, weighted, one_process):
    """Tabulate an accuracy over two ranks, as each of them, two means and one process find it.

    Parameters
    ----------
    found : array [2, 3]
        Of each rank its accuracy, its loss, and its number of images.
    mean_of_means, weighted, one_process : float
        The mean of the two accuracies, that weighted by the numbers of images, and that of one process.

    Returns
    -------
    IPython.display.Markdown
    """
    rows = [[f"rank {rank}, {count:.0f} images", accuracy] for rank, (accuracy, _, count) in enumerate(found)]
    rows += [["mean of means", mean_of_means], ["weighted mean", weighted], ["one process, all images", one_process]]
    return table(["who", "accuracy"], [[who, f"{accuracy:.4f}"] for who, accuracy in rows])


def notices(rows):
    """Say which checks notice a broken piece.

    A check notices if what it finds with the broken piece and with the right one differ by more than its bound.

    Parameters
    ----------
    rows : sequence of (str, float, float, float)
        Of each check its name, what it finds with the broken piece and with the right one, and its bound.

    Returns
    -------
    IPython.display.Markdown
        The table, with a column "notices".
    list of bool
        Of each check whether it notices.
    """
    noticed = [bool(abs(broken - right) > bound) for _, broken, right, bound in rows]
    shown = [
        [name, *(f"{number:.2g}" for number in numbers), "yes" if found else "no"]
        for (name, *numbers), found in zip(rows, noticed, strict=True)
    ]
    return table(["check", "broken", "right", "bound", "notices"], shown), noticed
