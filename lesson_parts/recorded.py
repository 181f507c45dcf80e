"""The saved results of `python -m benchmarks.losses`, as the tables and the figures that lesson 06 reads."""

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, table
from helpers.word2vec import LOSSES

COMPARED = {  # title, score, words, limit
    "time": (
        ("651 words, 4 s: twins", "twins", 651, "time"),
        ("10,000 words, 10 s: plurals", "plurals", 10_000, "time"),
    ),
    "pairs": (
        ("651 words: twins", "twins", 651, "pairs"),
        ("10,000 words: plurals", "plurals", 10_000, "pairs"),
        ("10,000 words: seconds", "seconds", 10_000, "pairs"),
    ),
}


def series(rows, x, y, **where):
    """Columns x and y, two arrays, of the rows (dicts) that have these values."""
    chosen = [row for row in rows if where.items() <= row.items()]
    return [np.array([row[column] for row in chosen]) for column in (x, y)]


def cost_beside_full(bench, loss, num_sampled):
    """Vocabularies, and at each the ms of a step of this loss and of the full softmax: three arrays."""
    words, ms = series(bench["cost"], "vocabulary", "ms", loss=loss, num_sampled=num_sampled)
    full_ms = dict(zip(*series(bench["cost"], "vocabulary", "ms", loss="full_softmax")))
    return words, ms, np.array([full_ms[size] for size in words])


def crossover(sizes, full_ms, sampled_ms):
    """How many words make a step of both equally long.

    Between the two neighbouring sizes where the faster one changes, the ratio of the times is interpolated, on
    logarithmic scales. If it changes more than once, the last time counts.

    Parameters
    ----------
    sizes : sequence of int
        Vocabularies, rising.
    full_ms, sampled_ms : sequences of float
        Times of a step at each.

    Raises
    ------
    ValueError
        When they do not cross between these sizes.
    """
    gap = np.log(np.divide(full_ms, sampled_ms))  # above 0: sampling wins
    if gap[0] > 0:
        raise ValueError("sampling wins everywhere: add smaller vocabularies")
    if gap[-1] <= 0:
        raise ValueError("the full softmax wins: add larger vocabularies")
    last = np.flatnonzero(gap <= 0)[-1]  # the last size where it does not
    share = -gap[last] / (gap[last + 1] - gap[last])
    return sizes[last] * (sizes[last + 1] / sizes[last]) ** share


def draw_crossovers(bench, amounts, title):
    """Draw the time of a step of the full softmax, divided by the sampled softmax's, against words / samples.

    amounts: of samples, a line for each.
    """
    _, axis = plt.subplots(figsize=(5, 3.8))
    for n, mark, color in zip(amounts, ("o-", "s-", "^-"), COLORS):
        words, ms, full_ms = cost_beside_full(bench, "sampled_softmax", n)
        axis.loglog(words / n, full_ms / ms, mark, color=color, label=f"{n:,} samples")
    axis.axhline(1, color="k", ls="--", lw=1)
    axis.set(title=title, xlabel="words / samples", ylabel="time of a step: full / sampled")
    axis.set(xlim=(0.9, 80), ylim=(0.4, 60))
    axis.set_xticks([1, 2, 4, 10, 50], [1, 2, 4, 10, 50])
    axis.set_yticks([0.5, 1, 2, 10, 50], [0.5, 1, 2, 10, 50])
    axis.minorticks_off()
    axis.legend()
    plt.show()


def final(bench, loss, score, words, limit):
    """The last value of each seed, an array; limit: "pairs" or "time", what all losses had the same of."""
    where = {"loss": loss, "vocabulary": words, "limit": limit, "start": "frequency"}
    _, found = series(bench["quality"], "seed", score, **where)
    return found.reshape(bench["settings"]["seeds"], -1)[:, -1]


def quality_table(bench, same):
    """The range of the seeds with each of the four losses, after the same "time" or the same "pairs"."""
    rows = []
    for title, *run in COMPARED[same]:
        scores = [final(bench, loss, *run) for loss in LOSSES]
        places = 2 if "seconds" in run else 3
        rows.append([title, *(f"{found.min():.{places}f} to {found.max():.{places}f}" for found in scores)])
    return table([f"same {same}: range of {bench['settings']['seeds']} seeds", *LOSSES], rows)


def draw_quality(bench, words, score, title):
    """Draw a score against training time: the full softmax, and the three others as one; bands from worst to best."""
    full, *others = LOSSES
    _, axis = plt.subplots(figsize=(6, 3.4))
    for losses, color, label in (([full], SERIAL, full), (others, COLORS[0], "the three others")):
        spent, found = [], []
        for loss in losses:
            where = {"loss": loss, "vocabulary": words, "limit": "time"}
            seconds, scores = series(bench["quality"], "seconds", score, **where)
            spent += [*seconds.reshape(bench["settings"]["seeds"], -1)]
            found += [*scores.reshape(bench["settings"]["seeds"], -1)]
        at = np.mean(spent, axis=0)
        axis.plot(at, np.mean(found, axis=0), "o-", color=color, label=label)
        axis.fill_between(at, np.min(found, axis=0), np.max(found, axis=0), color=color, alpha=0.2, lw=0)
    axis.set(title=title, xlabel="training, s", ylabel=f"{score} found", xlim=(0, None))
    axis.legend(loc="upper left")
    plt.show()


def samplers_table(bench):
    """The plurals found with each sampler and each of two losses: the mean and, in brackets, each seed."""
    rows = []
    for sampler in ("log_uniform", "uniform", "unigram"):
        row = [sampler]
        for loss in ("sampled_softmax", "sgns"):
            _, found = series(bench["samplers"], "seed", "plurals", sampler=sampler, loss=loss)
            row.append(f"{found.mean():.3f} ({', '.join(f'{score:.3f}' for score in found)})")
        rows.append(row)
    return table(["plurals, mean (seeds 0, 1, 2)", "sampled_softmax", "sgns"], rows)
