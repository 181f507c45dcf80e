"""More ranks than cores, and what they cost in quality: `python -m benchmarks.many_ranks [--ranks 1 2 4 8]`.

Trains the block trainer on the same text for as many epochs with each number of ranks, all on this machine, in turns.
Prints words/s of all ranks together and the quality of the vectors: the share of expected neighbours that are found
(see `benchmarks.strategies`) and WordSim-353. With more ranks each sees less of the text between two exchanges that
are as many as before, and more changes are added up in each.
"""

import argparse
import sys
from statistics import mean, median

from benchmarks.options import check_writable, positive, write_json
from benchmarks.strategies import quality
from benchmarks.words_per_second import frequent, train_on_ranks
from helpers.cluster import RankFailure
from helpers.text import load_corpus


def run(n, ids, vocab, epochs, seed):
    """One run: words/s of n ranks, and the quality of their vectors."""
    results = train_on_ranks(n, ids, vocab, epochs, seed)
    seconds = max(seconds for _, seconds, *_ in results)
    found = quality(results[0][0], vocab)
    spent = results[0][-1]["spent"]
    return {
        "words_per_s": epochs * len(ids) / seconds,
        "waiting": spent.get("waiting for Horovod", 0.0) / seconds,
        "found": found["found"],
        "wordsim353": found["wordsim353"],
    }


def measure(words, options):
    """{number of ranks: list of runs}, one for each seed."""
    runs = {n: [] for n in options.ranks}
    vocab = frequent(words)
    ids = vocab.encode(words)
    for seed in range(options.repeats):
        for n in options.ranks:
            runs[n].append(run(n, ids, vocab, options.epochs, seed))
    return runs


def print_table(runs):
    base = median(row["words_per_s"] for row in runs[2 if 2 in runs else min(runs)])
    print(f"{'ranks':>5}{'words/s':>12}{'of two':>8}{'waiting':>9}{'found':>7}  (least, most){'WordSim':>9}")
    for n, rows in runs.items():
        speed, found = median(row["words_per_s"] for row in rows), [row["found"] for row in rows]
        scored = [row["wordsim353"] for row in rows if row["wordsim353"] is not None]
        print(f"{n:>5}{speed:>12,.0f}{speed / base:>8.2f}{median(row['waiting'] for row in rows):>9.1%}", end="")
        print(f"{mean(found):>7.2f}  ({min(found):.2f}, {max(found):.2f})", end="")
        print(f"{mean(scored):>9.3f}" if scored else f"{'-':>9}")


def draw(runs, path):
    """Throughput and quality against the number of ranks, written to `path`: medians or means, and each seed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from helpers.plots import COLORS, use_style

    use_style()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, what, middle, label in (
        (axes[0], "words_per_s", median, "words/s of all ranks"),
        (axes[1], "found", mean, "expected neighbours found"),
    ):
        axis.plot([*runs], [middle(row[what] for row in rows) for rows in runs.values()], color=COLORS[0])
        for n, rows in runs.items():
            axis.plot([n] * len(rows), [row[what] for row in rows], "o", color=COLORS[0], alpha=0.5)
        axis.set_xscale("log", base=2)
        axis.set(xticks=[*runs], xticklabels=[*runs], xlabel="ranks", ylabel=label, ylim=0)
    figure.savefig(path, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_ranks", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--corpus", default="docs", help="docs, text8, planted or a path (default: docs)")
    parser.add_argument("--ranks", type=positive, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--repeats", type=positive, default=3, help="so many seeds (default: 3)")
    parser.add_argument("--json", metavar="OUT", help="write the runs to this file")
    parser.add_argument("--figure", metavar="OUT", help="draw them into this PNG")
    options = parser.parse_args()
    try:
        check_writable(options.json, options.figure)
        runs = measure(load_corpus(options.corpus).words, options)
    except (OSError, ValueError, RankFailure) as error:
        sys.exit(str(error))
    print_table(runs)
    if options.json:
        write_json(options.json, {"settings": vars(options), "runs": runs})
    if options.figure:
        draw(runs, options.figure)


if __name__ == "__main__":
    main()
