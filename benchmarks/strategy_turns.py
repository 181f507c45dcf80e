"""How fast the strategies of lesson 12 are in several runs: `python -m benchmarks.strategy_turns [--runs 7]`.

Each run starts two ranks anew. On them each group of strategies takes turns with a rank alone, with ranks that
exchange nothing and with ranks that exchange one number; a turn is as long as in the lesson. A last group has two ranks
whose Horovod negotiates every tensor anew, since it has no cache, and a strategy that merges rows and sends none:
controls for what merging duplicates brings.
"""

import argparse
import sys

from benchmarks.more_strategies import read
from benchmarks.options import check_writable, positive, write_json
from helpers.cluster import connect
from lesson_parts.strategies import STRATEGIES, make_deduplicated
from lesson_parts.turns import in_runs, measure, show

GROUPS = (["canonical"], ["bigger batch", "dense", "deduplicated rows"], ["local SGD", "hot and cold", "overlap"])
SECONDS = {"canonical": 0.32, "bigger batch": 0.32, "local SGD": 0.4}  # of a turn, by the first strategy of a group
NO_CACHE = {"HOROVOD_CACHE_CAPACITY": "0"}
CONTROLS = ["bigger batch", "deduplicated rows", "merging only"]


class OnlyWork:
    """In the place of horovod.tensorflow: nothing is sent."""

    @staticmethod
    def allreduce(tensor):
        return tensor


def make_merging_only(tables, hvd=None):
    """Merge the rows of a batch as `make_deduplicated` does, and exchange nothing."""
    return make_deduplicated(tables, OnlyWork)


def run_once(ids, vocab, turns):
    """{strategy: {"one", "apart", "number", "two": pairs/s of each turn}}; the last group's end with ", no cache"."""
    found = {}
    for env, groups, ending in ((None, GROUPS, ""), (NO_CACHE, [CONTROLS], ", no cache")):
        with connect(2, env=env) as ranks:
            for names in groups:
                group = take_turns(ranks, names, ids, vocab, turns)
                alone, apart, number, *_ = group.values()
                shared = {"one": alone, "apart": apart, "number": number}
                found |= {name + ending: shared | {"two": group[name]} for name in names}
    return found


def take_turns(ranks, names, ids, vocab, turns):
    """{mode: pairs/s of each turn} of a group, as `measure` finds them; a rank alone has more of them."""
    first = STRATEGIES[names[0]]
    makers = {name: STRATEGIES[name].make if name in STRATEGIES else make_merging_only for name in names}
    found = measure(ranks, first, first.make, makers, ids, vocab, turns, SECONDS[names[0]])
    print(show(found).data)
    return {mode: [*row["speed"]] for mode, row in found.items()}


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategy_turns", description=__doc__.partition("\n\n")[2]
    )
    parser.add_argument("--corpus", default="docs", help="docs, text8 or a path (default: docs)")
    parser.add_argument("--words", type=positive, default=400_000, help="so many words of it (default: 400000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000)
    parser.add_argument("--runs", type=positive, default=7)
    parser.add_argument("--turns", type=positive, default=7)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    try:
        ids, vocab = read(options.corpus, options.vocabulary, options.words)
        check_writable(options.json)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    runs = [run_once(ids, vocab, options.turns) for _ in range(options.runs)]
    for name in runs[0]:
        print(f"{name:30}" + "".join(f"{median:8.2f}" for median in sorted(in_runs(runs, name))))
    if options.json:
        settings = {"words": len(ids), "vocabulary": len(vocab), "turns": options.turns, "seconds": SECONDS}
        write_json(options.json, {"settings": settings, "runs": runs})


if __name__ == "__main__":
    main()
