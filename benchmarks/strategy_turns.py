"""How fast the strategies of lesson 12 are in several runs: `python -m benchmarks.strategy_turns [--runs 7]`.

Each run starts two ranks anew. On them each group of strategies takes turns with a rank alone and with ranks that
exchange nothing, as in the lesson.
"""

import argparse

import numpy as np

from benchmarks.more_strategies import read
from benchmarks.options import check_writable, positive, write_json
from helpers.cluster import connect
from helpers.exchange import STRATEGIES
from helpers.turns import measure, show

GROUPS = (["canonical"], ["bigger batch", "dense", "deduplicated rows"], ["local SGD", "hot and cold", "overlap"])


def run_once(ids, vocab, turns):
    """{strategy: {mode: pairs/s of each turn}}, with the modes of its group that exchange nothing."""
    found = {}
    with connect(2) as ranks:
        for names in GROUPS:
            first = STRATEGIES[names[0]]
            makers = {name: STRATEGIES[name].make for name in names}
            group = measure(ranks, first, first.make, makers, ids, vocab, turns)
            print(show(group).data)
            alone, apart, *_ = ([*row["speed"]] for row in group.values())
            for name in names:
                found[name] = {"one": alone, "apart": apart, "two": [*group[name]["speed"]]}
    return found


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategy_turns", description=__doc__.partition("\n\n")[2]
    )
    parser.add_argument("--corpus", default="docs", help="docs, text8 or a path (default: docs)")
    parser.add_argument("--words", type=positive, default=400_000, help="so many words of it (default: 400000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000)
    parser.add_argument("--runs", type=positive, default=7)
    parser.add_argument("--turns", type=positive, default=3)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    check_writable(options.json)
    ids, vocab = read(options.corpus, options.vocabulary, options.words)
    runs = [run_once(ids, vocab, options.turns) for _ in range(options.runs)]
    for name in runs[0]:
        medians = [np.median(np.divide(run[name]["two"], run[name]["one"])) for run in runs]
        print(f"{name:20}" + "".join(f"{median:8.2f}" for median in sorted(medians)))
    if options.json:
        settings = {"words": len(ids), "vocabulary": len(vocab), "turns": options.turns}
        write_json(options.json, {"settings": settings, "runs": runs})


if __name__ == "__main__":
    main()
