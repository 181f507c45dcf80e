"""More ranks than cores, and what they cost in quality: `python -m benchmarks.many_ranks [--ranks 1 2 4 8]`.

Trains the block trainer on the same text for as many epochs with each number of ranks, all on this machine, in turns.
Prints words/s of all ranks together and the scores of the vectors. Ranks exchange every `Blocks.interval` words of
each, at least `Blocks.intervals` times in an epoch: so with more ranks an epoch has fewer exchanges, and each of them
merges the changes of more ranks. With --rule interval, rows, rate and merge are those of lesson 14's rule.
"""

import argparse
import sys
from pathlib import Path
from statistics import mean, median

from benchmarks.options import check_writable, positive, write_json
from benchmarks.words_per_second import SCORES, frequent, quality, train_on_ranks
from helpers.cluster import RankFailure
from helpers.text import load_corpus


def run(n, ids, vocab, epochs, seed, how):
    """One run: words/s of n ranks, and the quality of their vectors."""
    results = train_on_ranks(n, ids, vocab, epochs, seed, how)
    seconds = max(seconds for _, seconds, *_ in results)
    spent = results[0][-1]["spent"]
    return {
        "words_per_s": epochs * len(ids) / seconds,
        "waiting": spent.get("waiting for Horovod", 0.0) / seconds,
        **quality(results[0][0][1:], vocab.words[1:]),
    }


def measure(words, options):
    """{number of ranks: list of runs}, one for each seed."""
    runs = {n: [] for n in options.ranks}
    vocab = frequent(words)
    ids = vocab.encode(words)
    for seed in range(options.repeats):
        for n in options.ranks:
            runs[n].append(run(n, ids, vocab, options.epochs, seed, "rule" if options.rule else "loop"))
    return runs


def known(rows, score):
    """The values of a score that could be computed, one for each seed."""
    return [row[score] for row in rows if row[score] is not None]


def print_table(runs):
    base = median(row["words_per_s"] for row in runs[2 if 2 in runs else min(runs)])
    scores = [f"{name + ' (least, most)':>26}" for name in SCORES]
    print(f"{'ranks':>5}{'words/s':>12}{'of two':>8}{'waiting':>9}", *scores)
    for n, rows in runs.items():
        speed = median(row["words_per_s"] for row in rows)
        print(f"{n:>5}{speed:>12,.0f}{speed / base:>8.2f}{median(row['waiting'] for row in rows):>9.1%}", end=" ")
        values = [known(rows, score) for score in SCORES]
        texts = [f"{mean(found):.3f} ({min(found):.3f}, {max(found):.3f})" if found else "-" for found in values]
        print(*(f"{text:>26}" for text in texts))


def draw(runs, corpus, path):
    """Throughput and quality against the number of ranks, written to `path`: medians or means, and each seed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from helpers.plots import COLORS, use_style

    use_style()
    figure, (speed, scored) = plt.subplots(2, 1, figsize=(6, 6.5))  # legible on a phone, too
    throughput = {n: [row["words_per_s"] / 1e6 for row in rows] for n, rows in runs.items()}
    draw_line(speed, throughput, median, COLORS[0], "")
    fastest = max(throughput, key=lambda n: median(throughput[n]))
    speed.set_title(f"On {corpus} words/s are highest with ranks = {fastest}")
    speed.set(ylabel="million words/s, all ranks", ylim=0)
    for score, color in zip(SCORES, COLORS, strict=False):
        values = {n: found for n, rows in runs.items() if (found := known(rows, score))}
        draw_line(scored, values, mean, color, SCORES[score])
    title, few, many = "Scores after as many epochs", *(known(runs[n], "wordsim353") for n in (min(runs), max(runs)))
    if few and many:
        title = f"WordSim-353: {mean(few):.2f} with ranks = {min(runs)}, {mean(many):.2f} with {max(runs)}"
    scored.set(ylabel="score", title=title)
    if scored.lines:
        scored.legend()
    for axis in speed, scored:
        axis.set_xscale("log", base=2)
        axis.set(xticks=[*runs], xticklabels=[*runs], xlabel="ranks")
    figure.savefig(path, metadata={"Software": None})


def draw_line(axis, values, middle, color, label):
    """values: {number of ranks: one value for each seed}."""
    axis.plot([*values], [middle(found) for found in values.values()], color=color, label=label)
    for n, found in values.items():
        axis.plot([n] * len(found), found, "o", color=color, alpha=0.5)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_ranks", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--corpus", default="docs", help="docs, text8, planted or a path (default: docs)")
    parser.add_argument("--ranks", type=positive, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--repeats", type=positive, default=3, help="so many seeds (default: 3)")
    parser.add_argument("--rule", action="store_true", help="exchange by the rule of lesson 14, `schedule`")
    parser.add_argument("--json", metavar="OUT", help="write the runs to this file")
    parser.add_argument("--figure", metavar="OUT", help="draw them into this PNG")
    options = parser.parse_args()
    try:
        check_writable(options.json, options.figure)
        corpus = load_corpus(options.corpus)
        runs = measure(corpus.words, options)
    except (OSError, ValueError, RankFailure) as error:
        sys.exit(str(error))
    name = Path(corpus.name).name
    print_table(runs)
    if options.json:
        write_json(options.json, {"settings": {**vars(options), "corpus": name}, "runs": runs})
    if options.figure:
        draw(runs, name, options.figure)


if __name__ == "__main__":
    main()
