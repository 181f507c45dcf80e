"""What lesson 06 measures itself: how steps take turns to be timed, and the figures of that and of where losses end."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL
from lesson_parts.recorded import series


def fastest_ms(call_ms, works, turns=3, steps=10):
    """The fastest call of each function, in ms: array [works].

    They take turns, a few calls each, and a first turn warms up.

    call_ms: of a function to the ms of one call. works: functions without arguments. turns, steps: how often each has
    its turn, and its calls in one.
    """
    times = [[] for _ in works]
    for turn in range(1 + turns):
        for work, its_times in zip(works, times):
            found = [call_ms(work) for _ in range(steps)]
            its_times.extend(found if turn > 0 else [])
    return np.min(times, axis=1)


def grid_ms(call_ms, step_of, kinds, sizes):
    """The ms of the step of each kind and size: array [kinds, sizes, 3 rounds], each the fastest of 5 calls.

    call_ms: see `fastest_ms`. step_of: of a kind and a size to a function without arguments.
    """
    steps = [step_of(kind, size) for size in sizes for kind in kinds]
    rounds = [fastest_ms(call_ms, steps, turns=1, steps=5) for _ in range(3)]
    return np.reshape(rounds, [3, len(sizes), len(kinds)]).T


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


def draw_costs(sizes, ms, full_alone, sampled_alone, title):
    """Draw the time of a step against the vocabulary.

    sizes: of the vocabulary. ms: [kinds, sizes], the full softmax first, then NCE with each sampler. full_alone,
    sampled_alone: ms of the matrix products, [sizes] and one number.
    """
    _, axis = plt.subplots(figsize=(6, 4.2))
    axis.loglog(sizes, ms[0], "o-", color=SERIAL, label="full softmax")
    low, high = ms[1:].min(axis=0), ms[1:].max(axis=0)
    axis.fill_between(sizes, low, high, color=COLORS[0], label="NCE, 64 samples: from sampler to sampler")
    axis.loglog(sizes, full_alone, "k--", lw=1, label="full softmax, products alone")
    axis.axhline(sampled_alone, color="k", ls=":", lw=1, label="NCE, products alone")
    axis.set(title=title, xlabel="vocabulary, words", ylabel="one step, ms")
    axis.set_ylim(sampled_alone / 2, None)
    axis.legend(fontsize=9)
    plt.show()


def draw_step_times(bench, sizes, ms, title):
    """Draw the reader's ms of a step and the recorded ones against the vocabulary.

    bench: the saved results. sizes: of the vocabulary. ms: [kinds, sizes, rounds], the full softmax first, then NCE
    with each sampler.
    """
    _, axis = plt.subplots(figsize=(6, 4.2))
    yours = np.median(ms, axis=2)
    axis.loglog(sizes, yours[0], "o-", color=SERIAL, label="full softmax, yours")
    low, high = yours[1:].min(axis=0), yours[1:].max(axis=0)
    axis.fill_between(sizes, low, high, color=COLORS[0], alpha=0.4, label="NCE, three samplers, yours")
    for loss, name, color in [("full_softmax", "full softmax", SERIAL), ("nce", "NCE", COLORS[0])]:
        words, recorded = series(bench["cost"], "vocabulary", "ms", loss=loss, num_sampled=64)
        shown = np.isin(words, sizes)
        axis.loglog(words[shown], recorded[shown], "x--", color=color, label=f"{name}, recorded")
    axis.set(title=title, xlabel="vocabulary, words", ylabel="one step, ms", ylim=(0.5, None))
    axis.set_xticks(sizes, [f"{V:,}" for V in sizes])
    axis.set_yticks([1, 10, 100], [1, 10, 100])
    axis.minorticks_off()
    axis.legend()
    plt.show()


def draw_twins(right, wrong, title):
    """Draw a dot for each training, the samplers one below the other.

    right, wrong: {sampler: the twins found with each seed}, with the right correction and with a wrong one.
    """
    _, axis = plt.subplots(figsize=(6, 3.6))
    for found, mark, color, label in [
        (right, "o", COLORS[0], "right correction"),
        (wrong, "X", COLORS[3], "as if uniform"),
    ]:
        places = [list(right).index(sampler) for sampler in found for _ in found[sampler]]
        axis.plot(np.concatenate(list(found.values())), places, mark, color=color, ms=8, alpha=0.6, label=label)
    axis.set_yticks(range(len(right)), [name.replace(", ", ",\n") for name in right])
    axis.set(title=title, xlabel="twins found, a dot for each seed", ylim=(len(right) - 0.4, -0.6))
    axis.legend(loc="lower left")
    plt.show()
