"""Every strategy with its quality: `python -m benchmarks.strategies [--corpus docs] [--epochs 1] [--strategies A B]`.

Each strategy of lesson 12, and some more, trains on one rank and on two, for as many pairs as `--epochs` epochs have;
the two ranks also run for a moment with communication disabled, which shows what it costs. gensim with two workers
beside.
"""

import argparse
import json
import sys

import numpy as np

from benchmarks.more_strategies import ALL, planned, read
from benchmarks.options import as_text, check_writable, label_of, positive, write_json
from benchmarks.training import train_strategy
from benchmarks.words_per_second import train_gensim
from helpers.cluster import connect, report
from helpers.exchange.cost_model import latency_and_bandwidth, time_collectives
from helpers.word2vec.scores import scores
from helpers.word2vec.vectors import to_keyed_vectors
from lesson_parts.plans import predicted
from lesson_parts.strategies import DIM, WINDOW, pairs_of

EXPECTED = """
    rows columns, first last, left right, width height, minimum maximum, true false, upper lower, row column,
    input output, start end, before after, x y, high low, largest smallest, positive negative, read write,
    float integer, mean variance
"""
COLUMNS = ("pairs_per_s", "bytes_per_pair", "formula", "share", "predicted", "loss", "found", "wordsim353", "simlex999")


def run(name, text, alone, options):
    """On a rank: train by one strategy; None on the ranks that are not wanted."""
    import horovod.tensorflow as hvd

    if alone and hvd.rank():
        return None
    several = None if alone else hvd
    found = train_strategy(ALL[name], *read(*text), report=report, hvd=several, **options)
    return found if alone or not hvd.rank() else {**found, "vectors": None}


def collectives():
    import horovod.tensorflow as hvd

    return time_collectives(hvd=hvd)


def expected(vocab):
    """The EXPECTED pairs of which both words are in the vocabulary."""
    pairs = [pair.split() for pair in EXPECTED.split(",")]
    return [pair for pair in pairs if set(pair) <= set(vocab.words)]


def quality(vectors, vocab):
    """The scores of helpers.word2vec, and the share of EXPECTED pairs among the 10 nearest words."""
    if not np.isfinite(vectors).all():
        return {"found": 0.0, "wordsim353": None, "simlex999": None, "analogy": None}
    keyed = to_keyed_vectors(vectors, vocab.words)
    near = [other in dict(keyed.most_similar(word)) for word, other in expected(vocab)]
    all_scores = scores(keyed)
    return {"found": float(np.mean(near)) if near else 0.0} | {
        name: all_scores[name] for name in ("wordsim353", "simlex999", "analogy")
    }


def row(name, ranks, results, vocab):
    results = [result for result in results if result]
    seconds, pairs = max(r["seconds"] for r in results), sum(r["pairs"] for r in results)
    found = {"strategy": name, "ranks": ranks, "pairs": pairs, "seconds": seconds, "pairs_per_s": pairs / seconds}
    found |= {"bytes_per_pair": sum(r["bytes"] for r in results) / pairs, "loss": results[0]["loss"]}
    found["loss"] = found["loss"] if np.isfinite(found["loss"]) else None  # diverged
    return found | quality(results[0]["vectors"], vocab)


def measure(name, ranks, text, options, network):
    """Two rows, for one rank and for two."""
    ids, vocab = read(*text)
    pairs = {"pairs": options.epochs * pairs_of(ids, vocab), "seed": options.seed}
    one = row(name, 1, ranks.run(run, name, text, True, pairs, progress=True), vocab)
    two = row(name, 2, ranks.run(run, name, text, False, pairs, progress=True), vocab)
    apart = ranks.run(run, name, text, False, {"seconds": options.seconds, "communicate": False})
    disabled = sum(r["pairs"] / r["seconds"] for r in apart)
    two["share"] = 1 - two["pairs_per_s"] / disabled  # of its time that a rank communicates
    step_pairs, _, sent = planned(name, ids, vocab)
    two["formula"] = sent / step_pairs
    two["predicted"] = predicted(name, ids, vocab, disabled, network, plan=planned)
    return [one, two]


def gensim_row(text, options):
    """gensim with two workers on the same words, UNK left out."""
    ids, vocab = read(*text)
    known = [vocab.words[i] for i in ids if i]
    model, seconds = train_gensim(known, 2, options.epochs, options.seed, min_count=1)
    pairs = options.epochs * pairs_of(ids[ids > 0], vocab)
    found = {"strategy": "gensim, 2 workers", "ranks": 2, "pairs": pairs, "seconds": seconds}
    found["pairs_per_s"] = pairs / seconds
    vectors = np.zeros([len(vocab), DIM], np.float32)
    vectors[0, 0] = 1  # UNK
    for i, word in enumerate(vocab.words[1:], 1):
        vectors[i] = model[word] if word in model else vectors[0]
    return {**found, "bytes_per_pair": 0.0, "loss": None, **quality(vectors, vocab)}


def show(rows):
    print(f"{'strategy':22}{'ranks':>6}" + "".join(f"{column:>15}" for column in COLUMNS))
    for one in rows:
        texts = "".join(f"{as_text(one.get(column)):>15}" for column in COLUMNS)
        print(f"{one['strategy']:22}{one['ranks']:6}{texts}")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--corpus", default="docs", help="docs, text8 or a path (default: docs)")
    parser.add_argument("--words", type=positive, default=3_000_000, help="so many words of it (default: 3000000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000)
    parser.add_argument("--epochs", type=positive, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategies", nargs="+", choices=[*ALL], default=[*ALL], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a run with communication disabled (default: 2)")
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    text = options.corpus, options.vocabulary, options.words
    try:
        ids, vocab = read(*text)
        check_writable(options.json)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    settings = {"corpus": label_of(options.corpus), "words": len(ids), "vocabulary": len(vocab)}
    settings |= {"dim": DIM, "window": WINDOW}
    settings |= {"epochs": options.epochs, "seed": options.seed, "asked": len(expected(vocab))}
    print("Settings:", json.dumps(settings))
    rows = []
    with connect(2) as ranks:
        timings = ranks.run(collectives)[0]
        network = latency_and_bandwidth(timings)
        print(f"latency {1e3 * network[0]:.2f} ms, bandwidth {network[1] / 1e6:,.0f} MB/s")
        for name in options.strategies:
            rows += measure(name, ranks, text, options, network)
            show(rows[-2:])
    rows.append(gensim_row(text, options))
    print("\nAll:")
    show(rows)
    if options.json:
        network = {"latency": network[0], "bandwidth": network[1], "timings": timings}
        results = {"settings": settings, **network, "rows": rows}
        write_json(options.json, results)


if __name__ == "__main__":
    main()
