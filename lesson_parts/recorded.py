"""The saved results of `python -m benchmarks.losses`, as the tables and the figures that lesson 06 reads."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from helpers.plots import COLORS, SERIAL, low_high, table
from lesson_parts.losses import LOSSES

TIMED = [("nce", 64), ("sampled_softmax", 64), ("sampled_softmax", 900), ("sampled_softmax", 3_600)]  # loss, samples
NAMES = {"full_softmax": "full softmax", "sampled_softmax": "sampled softmax", "nce": "NCE", "sgns": "SGNS"}
SCORES = {100: "twins", 651: "twins", 10_000: "plurals"}  # vocabulary: what the trainings on it were judged by


def series(rows, x, y, **where):
    """Columns x and y, two arrays, of the rows (dicts) that have these values."""
    chosen = [row for row in rows if where.items() <= row.items()]
    return [np.array([row[column] for row in chosen]) for column in (x, y)]


def full_beside_sampled(bench, num_sampled, loss):
    """Vocabularies [sizes], and ms of a step of the full softmax and of a sampled loss, each [runs, sizes]."""
    where = {"loss": loss, "num_sampled": num_sampled}
    words, sampled = series(bench["cost"], "vocabulary", "runs", **where)
    all_words, full = series(bench["cost"], "vocabulary", "runs", loss="full_softmax")
    return words, full[np.isin(all_words, words)].T, sampled.T


def times_as_long(bench, words, loss):
    """A step of the full softmax / one of a sampled loss with 64 samples: array [runs].

    words: of the vocabulary. Where it was not timed, a straight line between its neighbours, on logarithmic scales.
    """
    sizes, full, sampled = full_beside_sampled(bench, 64, loss)
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
    if (gap > 0).all():
        raise ValueError("sampling wins everywhere: add smaller vocabularies")
    if gap[-1] <= 0:
        raise ValueError("the full softmax wins: add larger vocabularies")
    last = np.flatnonzero(gap <= 0)[-1]  # the last size where it does not
    share = -gap[last] / (gap[last + 1] - gap[last])
    return sizes[last] * (sizes[last + 1] / sizes[last]) ** share


def crossovers_table(bench):
    """Where the recorded times cross, in words and in words for each sample."""
    rows = []
    for loss, n in TIMED:
        sizes, full, sampled = full_beside_sampled(bench, n, loss)
        runs = [crossover(sizes, *both) for both in zip(full, sampled)]
        rows.append([loss, f"{n:,}", *_in_words(runs, n)])
    return table(["recorded", "samples", "equally fast at, words", "words / samples (3 rounds)"], rows)


def _in_words(ends, n):
    """The median in words, and words / samples as "2.1 (2.0 to 2.2)"."""
    middle = np.median(ends)
    return [f"{middle:,.0f}", f"{middle / n:.1f} ({low_high(np.divide(ends, n), 1)})"]


def draw_crossovers(bench, title):
    """Draw the time of a step of the full softmax, divided by that of a sampled loss, against words / samples."""
    _, axis = plt.subplots(figsize=(5, 3.8))
    for (loss, n), mark, color in zip(TIMED, "sov^", COLORS):
        sizes, full, sampled = full_beside_sampled(bench, n, loss)
        ratio = np.median(full / sampled, axis=0)
        axis.loglog(sizes / n, ratio, mark + "-", ms=4, color=color, label=f"{NAMES[loss]}, {n:,} samples")
    axis.axhline(1, color="k", ls="--", lw=1)
    axis.set(title=title, xlabel="words / samples", ylabel="time of a step: full / sampled")
    axis.set(xlim=(0.9, 12), ylim=(0.4, 20))
    axis.set_xticks([1, 2, 3, 4, 10], [1, 2, 3, 4, 10])
    axis.set_yticks([0.5, 1, 2, 4, 8], [0.5, 1, 2, 4, 8])
    axis.minorticks_off()
    axis.legend(fontsize=8, loc="upper left")
    plt.show()


class Raced(NamedTuple):
    """The trainings with one loss at its best rate: lr, seconds and pairs [looks], scores [seeds, looks]."""

    lr: float
    seconds: np.ndarray
    pairs: np.ndarray
    scores: np.ndarray


def raced(bench, words):
    """Of each loss the trainings of the same time, at the rate tuned beforehand: {loss: Raced}.

    Seconds and pairs are medians of the seeds. words: of the vocabulary, 100, 651 or 10,000.
    """
    found = {}
    for loss in LOSSES:
        where = {"vocabulary": words, "part": "race", "loss": loss}
        rates, seeds = series(bench["rates"], "lr", "seed", **where)
        shape = len(set(seeds)), -1
        columns = "seconds", "pairs", SCORES[words]
        seconds, pairs, scores = (
            series(bench["rates"], "seed", column, **where)[1].reshape(shape) for column in columns
        )
        found[loss] = Raced(rates[0], np.median(seconds, axis=0), np.median(pairs, axis=0), scores)
    return found


def best_rates_table(bench):
    """Of each loss: its rate, the pairs, and the range of the seeds at the last look."""
    rows = []
    for words, score in SCORES.items():
        found = raced(bench, words)
        after = f"{found['sgns'].seconds[-1]:.0f} s"
        rows.append([f"{words:,} words: best rate", *(f"{run.lr:g}" for run in found.values())])
        rows.append([f"thousand pairs in {after}", *(f"{run.pairs[-1] / 1e3:,.0f}" for run in found.values())])
        rows.append([f"{score} after {after}", *(low_high(run.scores[:, -1], 3) for run in found.values())])
    return table(["3 seeds", *LOSSES], rows)


def pairs_table(bench, words):
    """The pairs that full softmax and NCE have seen at each look, and their scores, means of the seeds."""
    full, sampled = (raced(bench, words)[loss] for loss in ("full_softmax", "nce"))
    rows = []
    for look, seconds in enumerate(full.seconds):
        row = [f"{two_digits(seconds)} s"]
        for run in (full, sampled):
            row += [f"{run.pairs[look] / 1000:,.0f}", f"{run.scores[:, look].mean():.2f}"]
        rows.append(row)
    heads = ["full softmax: thousand pairs", SCORES[words], "NCE: thousand pairs", SCORES[words]]
    return table(["after", *heads], rows)


def draw_races(bench, title):
    """Draw the scores of full softmax and NCE against training time, 100 words above 651 above 10,000.

    Means and bands from the worst seed to the best.
    """
    figure, axes = plt.subplots(3, 1, figsize=(6, 8))
    for axis, (words, score) in zip(axes, SCORES.items()):
        found = raced(bench, words)
        for loss, color in (("full_softmax", SERIAL), ("nce", COLORS[0])):
            run = found[loss]
            axis.semilogx(run.seconds, run.scores.mean(axis=0), color=color, label=NAMES[loss])
            low, high = run.scores.min(axis=0), run.scores.max(axis=0)
            axis.fill_between(run.seconds, low, high, color=color, alpha=0.2, lw=0)
        axis.set_xticks(run.seconds, [two_digits(seconds) for seconds in run.seconds])
        axis.minorticks_off()
        axis.set(ylabel=f"{score} found")
        axis.text(0.02, 0.88, f"{words:,} words", transform=axis.transAxes)
    axes[2].set_xlabel("training, s")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle(title)
    plt.show()


def final(bench, loss, score, words):
    """The last value of each seed after the same pairs, an array."""
    _, found = series(bench["quality"], "seed", score, loss=loss, vocabulary=words, start="frequency")
    return found.reshape(bench["settings"]["seeds"], -1)[:, -1]


def same_pairs_table(bench):
    """The range of the seeds with each of the four losses, after the same pairs."""
    rows = []
    for words, score in (*SCORES.items(), (10_000, "seconds")):
        digits = 1 if score == "seconds" else 3
        row = [low_high(final(bench, loss, score, words), digits) for loss in LOSSES]
        rows.append([f"{words:,} words: {score}", *row])
    return table(["same pairs: range of 3 seeds", *LOSSES], rows)


def two_digits(number):
    """Format a number with its first two digits: "0.79", "14", "1,300"."""
    return f"{float(f'{number:.2g}'):,g}"


def leader(bench, words):
    """Whether "NCE", "full softmax" or "neither" leads at the last look: its worst seed is above the other's best."""
    runs = raced(bench, words)
    full, sampled = (runs[loss].scores[:, -1] for loss in ("full_softmax", "nce"))
    if min(sampled) > max(full):
        return "NCE"
    return "full softmax" if min(full) > max(sampled) else "neither"


def verdict_table(bench, yours):
    """Of each vocabulary: words for each of 64 samples, ratios of the times of a step, and which loss led.

    Parameters
    ----------
    bench : dict
        The saved results.
    yours : dict of {int: sequence of float}
        The reader's ratios, full softmax / NCE, one of each round; of the vocabularies that he has timed.
    """
    rows = []
    for words in (*SCORES, 1_000_000):
        leads = "not trained"
        if words in SCORES:
            leads = f"{leader(bench, words)}, after {raced(bench, words)['nce'].seconds[-1]:.0f} s"
        spans = _span(yours.get(words, [])), _span(times_as_long(bench, words, "nce"))
        rows.append([f"{words:,}", f"{words / 64:,.1f}", *spans, leads])
    heads = ["words", "for each sample", "your step, full / NCE", "recorded, full / NCE", "recorded: who leads"]
    return table(heads, rows)


def _span(ratios):
    """The smallest and the largest, or the only one."""
    if len(ratios) == 0:
        return "not timed"
    low, high = two_digits(min(ratios)), two_digits(max(ratios))
    return low if low == high else f"{low} to {high}"


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
