"""The two figures of what lesson 06 measures itself: where two losses end, and how long a step is."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL


def draw_ends(bars, E, title):
    """Draw a group of bars for each word.

    bars: {what: a probability for each word}. E: the expected counts of the words.
    """
    _, axis = plt.subplots(figsize=(6, 3.4))
    for place, (name, color) in enumerate(zip(bars, (SERIAL, *COLORS))):
        at = np.arange(len(E)) + 0.27 * (place - 1)
        boxes = axis.bar(at, bars[name], 0.25, color=color, label=name)
        axis.bar_label(boxes, fmt="%.2f", fontsize=8)
    axis.set_xticks(range(len(E)), [f"word {w}\nE = {E[w]}" for w in range(len(E))])
    axis.set(title=title, ylabel="p at the least mean loss", ylim=(0, 0.6))
    axis.grid(False)
    axis.legend()
    plt.show()


def draw_costs(sizes, ms, full_alone, sampled_alone, title):
    """Draw the time of a step against the vocabulary.

    sizes: of the vocabulary. ms: [losses, sizes], the full softmax first. full_alone, sampled_alone: ms of the matrix
    products, [sizes] and one number.
    """
    _, axis = plt.subplots(figsize=(6, 4.2))
    axis.loglog(sizes, ms[0], "o-", color=SERIAL, label="full softmax")
    low, high = ms[1:].min(axis=0), ms[1:].max(axis=0)
    axis.fill_between(sizes, low, high, color=COLORS[0], label="the others, with samples: fastest to slowest")
    axis.loglog(sizes, full_alone, "k--", lw=1, label="full, products alone")
    axis.axhline(sampled_alone, color="k", ls=":", lw=1, label="sampled, products alone")
    axis.set(title=title, xlabel="vocabulary, words", ylabel="one step, ms")
    axis.set_ylim(sampled_alone / 2, None)
    axis.legend(fontsize=9)
    plt.show()
