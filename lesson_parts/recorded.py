"""The saved results of `python -m benchmarks.losses`, as the tables and the figures that lesson 06 reads."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, table
from helpers.word2vec import LOSSES


def series(rows, x, y, **where):
    """Columns x and y, two arrays, of the rows (dicts) that have these values."""
    chosen = [row for row in rows if where.items() <= row.items()]
    return [np.array([row[column] for row in chosen]) for column in (x, y)]


def full_beside_sampled(bench, num_sampled):
    """Vocabularies [sizes], and ms of a step of the full and of the sampled softmax, each [runs, sizes]."""
    where = {"loss": "sampled_softmax", "num_sampled": num_sampled}
    words, sampled = series(bench["cost"], "vocabulary", "runs", **where)
    all_words, full = series(bench["cost"], "vocabulary", "runs", loss="full_softmax")
    return words, full[np.isin(all_words, words)].T, sampled.T


def times_as_long(bench, words, num_sampled=64):
    """A step of the full softmax / one of the sampled softmax: array [runs].

    words: of the vocabulary. Where it was not timed, a straight line between its neighbours, on logarithmic scales.
    """
    sizes, full, sampled = full_beside_sampled(bench, num_sampled)
    ratios = np.log(full / sampled)
    return np.exp([np.interp(np.log(words), np.log(sizes), run) for run in ratios])


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


def crossovers_table(bench, own):
    """Where the times cross, in words for each sample: recorded, three runs, and the reader's own.

    own: {samples: (words, full_ms, sampled_ms)}.
    """
    rows = []
    for n, times in own.items():
        words, full, sampled = full_beside_sampled(bench, n)
        runs = [crossover(words, *both) for both in zip(full, sampled)]
        span = " to ".join(f"{end / n:.1f}" for end in (min(runs), max(runs)))
        try:
            yours = crossover(*times)
            yours = [f"{yours:,.0f} words", f"{yours / n:.1f}"]
        except ValueError as error:
            yours = [str(error), ""]
        rows.append([f"{n:,}", f"{np.median(runs):,.0f} words", f"{np.median(runs) / n:.1f} ({span})", *yours])
    heads = ["samples", "recorded: equally fast at", "words / samples (3 runs)", "yours: equally fast at"]
    return table([*heads, "words / samples"], rows)


def draw_crossovers(bench, own, title):
    """Draw the time of a step of the full softmax, divided by the sampled softmax's, against words / samples.

    own: {samples: (words, full_ms, sampled_ms)}, the reader's, as rings beside the recorded lines.
    """
    _, axis = plt.subplots(figsize=(5, 3.8))
    for (n, times), mark, color in zip(own.items(), "os^", COLORS):
        words, full, sampled = full_beside_sampled(bench, n)
        ratio = np.median(full / sampled, axis=0)
        axis.loglog(words / n, ratio, mark + "-", ms=4, color=color, label=f"{n:,} samples")
        words, full, sampled = map(np.array, times)
        axis.loglog(words / n, full / sampled, mark, ms=9, color=color, fillstyle="none")
    axis.plot([], [], "o", ms=9, color=SERIAL, fillstyle="none", label="yours")
    axis.axhline(1, color="k", ls="--", lw=1)
    axis.set(title=title, xlabel="words / samples", ylabel="time of a step: full / sampled")
    axis.set(xlim=(0.9, 12), ylim=(0.4, 9))
    axis.set_xticks([1, 2, 3, 4, 10], [1, 2, 3, 4, 10])
    axis.set_yticks([0.5, 1, 2, 4, 8], [0.5, 1, 2, 4, 8])
    axis.minorticks_off()
    axis.legend()
    plt.show()


class Best(NamedTuple):
    """The trainings with one loss at its best rate: lr, seconds and pairs [checks], scores [seeds, checks]."""

    lr: float
    seconds: np.ndarray
    pairs: np.ndarray
    scores: np.ndarray


def at_best_rate(bench, words):
    """Of each loss the trainings at its best rate, that of the highest mean at the end: {loss: Best}.

    Seconds and pairs are means of the seeds. words: of the vocabulary, 651 or 10,000.
    """
    score = "twins" if words == 651 else "plurals"
    seeds = bench["settings"]["seeds"]
    of_text = [row for row in bench["rates"] if row["vocabulary"] == words]
    found = {}
    for loss in LOSSES:
        runs = []
        for lr in dict.fromkeys(row["lr"] for row in of_text):
            seconds, pairs, scores = (
                series(of_text, "lr", column, loss=loss, lr=lr)[1].reshape(seeds, -1)
                for column in ("seconds", "pairs", score)
            )
            runs.append(Best(lr, seconds.mean(axis=0), pairs.mean(axis=0), scores))
        found[loss] = max(runs, key=lambda run: run.scores[:, -1].mean())
    return found


def best_rates_table(bench):
    """With each loss at its best rate: the rate, the pairs, and the range of the seeds at the first and last look."""
    rows = []
    for words, score in ((651, "twins"), (10_000, "plurals")):
        found = at_best_rate(bench, words)
        first, last = (found["sgns"].seconds[look] for look in (0, -1))
        rows.append([f"{words:,} words: best rate", *(f"{run.lr:g}" for run in found.values())])
        rows.append([f"pairs in {last:.1f} s, thousand", *(f"{run.pairs[-1] / 1e3:,.0f}" for run in found.values())])
        rows.append([f"{score} after {first:.1f} s", *(to(run.scores[:, 0]) for run in found.values())])
        rows.append([f"{score} after {last:.1f} s", *(to(run.scores[:, -1]) for run in found.values())])
    return table(["3 seeds", *LOSSES], rows)


def to(values, digits=3):
    """The smallest and the largest, as "0.990 to 0.998"."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def draw_quality(bench, title):
    """Draw the scores against training time, 651 words above 10,000: full softmax, and the three others as one.

    Lines are means, bands go from the worst run to the best.
    """
    full, *others = LOSSES
    figure, axes = plt.subplots(2, 1, figsize=(6, 5.6))
    for axis, words, score in zip(axes, (651, 10_000), ("twins", "plurals")):
        found = at_best_rate(bench, words)
        for losses, color, label in (([full], SERIAL, full), (others, COLORS[0], "the three others")):
            seconds = np.mean([found[loss].seconds for loss in losses], axis=0)
            scores = np.concatenate([found[loss].scores for loss in losses])
            axis.plot(seconds, scores.mean(axis=0), "o-", color=color, label=label)
            axis.fill_between(seconds, scores.min(axis=0), scores.max(axis=0), color=color, alpha=0.2, lw=0)
        axis.set(ylabel=f"{score} found", xlim=(0, None))
        axis.text(0.98, 0.12, f"{words:,} words", ha="right", transform=axis.transAxes)
    axes[1].set_xlabel("training, s")
    axes[0].legend(loc="upper left")
    figure.suptitle(title)
    plt.show()


def final(bench, loss, score, words):
    """The last value of each seed after the same pairs, an array."""
    _, found = series(bench["quality"], "seed", score, loss=loss, vocabulary=words, start="frequency")
    return found.reshape(bench["settings"]["seeds"], -1)[:, -1]


def same_pairs_table(bench):
    """The range of the seeds with each of the four losses, after the same pairs."""
    rows = []
    for words, score in ((651, "twins"), (10_000, "plurals"), (10_000, "seconds")):
        digits = 1 if score == "seconds" else 3
        row = [to(final(bench, loss, score, words), digits) for loss in LOSSES]
        rows.append([f"{words:,} words: {score}", *row])
    return table(["same pairs: range of 3 seeds", *LOSSES], rows)


def two_digits(number):
    """Format a number with its first two digits: "0.79", "14", "1,300"."""
    return f"{float(f'{number:.2g}'):,g}"


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
