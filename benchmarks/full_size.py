"""The article's numbers, unshortened: `python -m benchmarks.full_size TEXT [--steps 100000] [--json OUT]`.

50,000 words, vectors of 128, 100,000 steps of 128 pairs on one rank and 50,001 on each of two, gradient descent at a
rate of 1 for each rank. The step is `helpers.word2vec.make_step`, the pairs come from `generate_batch` as the article
calls it, two of each center from a window of one word; each rank draws pairs and negatives of its own.
"""

import argparse
import sys
import time
from datetime import date

import numpy as np

from benchmarks.more_strategies import read
from benchmarks.options import as_text, check_writable, label_of, positive, write_json
from benchmarks.strategies import quality
from helpers.cluster import connect, report

BATCH, SKIPS, WINDOW, SAMPLED, RATE = 128, 2, 1, 64, 1.0
LOOKS = 20  # so often the loss is noted
COLUMNS = ("steps", "seconds", "pairs_per_s", "loss", "wordsim353", "simlex999", "analogy")


def train(text, dim, steps, seed, alone):
    """On each rank: seconds, mean losses of each twentieth of the steps, and rank 0's vectors; None on idle ranks."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    from helpers.text import generate_batch
    from helpers.word2vec import make_step, make_tables

    if alone and hvd.rank():
        return None
    rank, size = (0, 1) if alone else (hvd.rank(), hvd.size())
    ids, vocab = read(*text)
    rng = np.random.default_rng([seed, rank])
    tf.random.set_seed(seed + 1_000 * rank)
    tables = make_tables(len(vocab), dim, seed)
    step = make_step(tables, SAMPLED, None if alone else hvd)
    todo = steps // size + 1 if size > 1 else steps  # as the article counts them
    losses, begin = np.empty(todo), time.perf_counter()
    for done in range(todo):
        losses[done] = step(*generate_batch(ids, BATCH, SKIPS, WINDOW, rng), RATE * size).numpy()
        if done % 500 == 499:
            report(done, todo, losses[done], size * BATCH * (done + 1) / (time.perf_counter() - begin))
    seconds = time.perf_counter() - begin
    looks = np.arange(todo) * LOOKS // todo  # of each step
    means = np.bincount(looks, losses) / np.bincount(looks)
    vectors = None if rank else tables[0].numpy()
    return {"steps": todo, "seconds": seconds, "losses": means.tolist(), "vectors": vectors}


def row(n, ranks, text, vocab, options):
    """What one run gave: on one rank of the two, or on both. vocab: of the text, which the ranks read themselves."""
    settings = text, options.dim, options.steps, options.seed, n == 1
    found = ranks.run(train, *settings, progress=True)[0]
    found |= {"ranks": n, "loss": found["losses"][-1]} | quality(found.pop("vectors"), vocab)
    found["pairs_per_s"] = n * BATCH * found["steps"] / found["seconds"]
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.full_size", description=__doc__.partition("\n\n")[2])
    parser.add_argument("corpus", help="docs, text8 or a path")
    parser.add_argument("--vocabulary", type=positive, default=50_000)
    parser.add_argument("--dim", type=positive, default=128)
    parser.add_argument("--steps", type=positive, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    text = options.corpus, options.vocabulary, None
    try:
        ids, vocab = read(*text)
        check_writable(options.json)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    settings = {"date": date.today().isoformat(), "corpus": label_of(options.corpus)}
    settings |= {"words": len(ids), "vocabulary": len(vocab)}
    settings |= {"dim": options.dim, "steps": options.steps, "batch": BATCH, "sampled": SAMPLED, "seed": options.seed}
    print("Settings:", settings)
    with connect(2) as ranks:
        rows = [row(n, ranks, text, vocab, options) for n in (1, 2)]
    print("ranks" + "".join(f"{column:>13}" for column in COLUMNS))
    for one in rows:
        print(f"{one['ranks']:5}" + "".join(f"{as_text(one[column]):>13}" for column in COLUMNS))
    if options.json:
        write_json(options.json, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
