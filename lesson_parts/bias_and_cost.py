"""What lesson 06 measures itself: trainings that take turns, and the figures of times, twins and ends."""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, table


def race_in_turns(racers, batches, score, looks=3, seconds=1):
    """Let trainings take turns.

    Parameters
    ----------
    racers : dict of {str: (tables, step)}
    batches : list of (centers, contexts)
        Of all racers, in this order, and again from the first one.
    score : function
        Of the first table, an array, to a number.
    looks : int
    seconds : float
        Of training before each look.

    Returns
    -------
    dict of {str: list of (int, float)}
        Of each racer at each look the pairs that it has seen, and its score.
    """
    for _, step in racers.values():
        step(*batches[0])  # compiles
    pairs_in_one = len(batches[0][0])
    done = dict.fromkeys(racers, 0)
    found = {name: [] for name in racers}
    for _ in range(looks):
        for name, (tables, step) in racers.items():
            end = perf_counter() + seconds
            while perf_counter() < end:
                step(*batches[done[name] % len(batches)]).numpy()
                done[name] += 1
            found[name].append((pairs_in_one * done[name], score(tables[0].numpy())))
    return found


def race_table(found):
    """Make a table of what `race_in_turns` returns, with a second between two looks."""
    rows = []
    for name, looks in found.items():
        rows.append([name, *(f"{pairs / 1000:.0f} thousand pairs: {score:.2f}" for pairs, score in looks)])
    heads = [f"after {second} s" for second, _ in enumerate(looks, 1)]
    return table(["twins found", *heads], rows)


def draw_ends(bars, E, title):
    """Draw a group of bars for each word.

    bars: {what: a probability for each word}. E: the expected counts of the words.
    """
    _, axis = plt.subplots(figsize=(6, 3.4))
    for place, (name, color) in enumerate(zip(bars, (SERIAL, *COLORS))):
        at = np.arange(len(E)) + 0.27 * (place - 1)
        boxes = axis.bar(at, bars[name], 0.25, color=color, label=name)
        axis.bar_label(boxes, fmt="%.2f", fontsize=9, rotation=90, padding=3)
    axis.set_xticks(range(len(E)), [f"word {w}\nE = {E[w]}" for w in range(len(E))])
    axis.set(title=title, ylabel="p at the least mean loss", ylim=(0, 0.66))
    axis.grid(False)
    axis.legend()
    plt.show()


def draw_step_times(sizes, ms, title):
    """Draw the ms of a step against the vocabulary: a line for the full softmax, a band for NCE.

    Parameters
    ----------
    sizes : sequence of int
        Of the vocabulary.
    ms : float array [kinds, sizes, rounds]
        The full softmax first, then NCE with each sampler.
    title : str
    """
    _, axis = plt.subplots(figsize=(6, 4.2))
    full, *sampled = np.median(ms, axis=2)
    low, high = np.min(sampled, axis=0), np.max(sampled, axis=0)
    axis.loglog(sizes, full, "o-", color=SERIAL)
    axis.fill_between(sizes, low, high, color=COLORS[0], alpha=0.5)
    ends = [("full softmax", full[-1], (-14, 0), SERIAL), ("NCE, three samplers", high[-1], (0, 12), COLORS[0])]
    for name, height, shift, color in ends:
        place = {"xytext": shift, "textcoords": "offset points", "ha": "right", "va": "center"}
        axis.annotate(name, (sizes[-1], height), color=color, **place)
    axis.set(title=title, xlabel="vocabulary, words", ylabel="one step, ms", ylim=(0.5, None))
    axis.set_xticks(sizes, [f"{V:,}" for V in sizes])
    axis.set_yticks([1, 10, 100], [1, 10, 100])
    axis.minorticks_off()
    plt.show()


def draw_twins(right, wrong, title):
    """Draw a mark for each training, a row for each way.

    right, wrong: {way: the twins found with each seed}, with the right correction, and below it with a wrong one.
    """
    _, axis = plt.subplots(figsize=(6, 3.6))
    ways = {**right, **wrong}
    for row, (way, found) in enumerate(ways.items()):
        mark, color = ("o", COLORS[0]) if way in right else ("X", COLORS[1])
        axis.plot(found, [row] * len(found), mark, color=color, ms=8, alpha=0.6)
    axis.set_yticks(range(len(ways)), [way.replace(", ", ",\n") for way in ways])
    axis.set(title=title, xlabel="twins found, a mark for each seed", ylim=(len(ways) - 0.5, -0.5))
    plt.show()
