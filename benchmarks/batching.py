"""How fast pairs are made: `python -m benchmarks.batching [--corpus PATH] [--json OUT] [--repeats 3] [--seed 0]`.

A first look in seconds: `--corpus planted --words 20000 --encode 100000 --seconds 0.05 --repeats 1`. Everything runs on
one thread, but `pair_dataset` fills its batches in a thread beside the one that takes them.
"""

import argparse
import statistics
import sys
import time
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.options import at_least, check_writable, positive, write_json
from helpers.text.corpus import load_corpus
from helpers.text.skipgram import generate_batch, pair_batches, skipgram_pairs
from helpers.text.vocab import Vocab
from helpers.word2vec.pair_dataset import pair_dataset

WINDOW = 5
SKIPS = (2, 2 * WINDOW)  # of the reference: a few neighbours of each center, and all of them
BATCH_SIZES = (128, 1_024, 16_384)


def reference_batches(ids, num_skips, rng):
    """`generate_batch` for ever: an iterator of (centers, contexts)."""
    while True:
        yield generate_batch(ids, 128 * num_skips, num_skips, WINDOW, rng)


def systems(ids, seed):
    """The programs to compare: rows of (name, batch size or None for all at once, function that starts an epoch)."""
    rng = np.random.default_rng(seed)
    rows = [(f"generate_batch/{k}", 128 * k, partial(reference_batches, ids, k, rng)) for k in SKIPS]
    rows += [("skipgram_pairs", None, lambda: [skipgram_pairs(ids, WINDOW, rng)])]
    rows += [("pair_batches", size, partial(pair_batches, ids, size, WINDOW, rng)) for size in BATCH_SIZES]
    rows += [("pair_dataset", size, partial(iter, pair_dataset(ids, size, WINDOW, seed))) for size in BATCH_SIZES]
    return rows


def pairs_per_second(start, seconds):
    """The pairs per second of one epoch, or of its first `seconds`; the time to the first batch counts too."""
    pairs, begin = 0, time.perf_counter()
    for centers, _ in start():
        pairs += len(centers)
        if time.perf_counter() - begin > seconds:
            break
    return pairs / (time.perf_counter() - begin)


def encode_seconds(vocab, words, n):
    """Seconds to encode `n` words, the corpus repeated."""
    text = (words * (n // len(words) + 1))[:n]
    begin = time.perf_counter()
    vocab.encode(text)
    return time.perf_counter() - begin


def measure(words, options):
    """All rows of the table: list of dict, medians of `options.repeats` measurements."""
    vocab = Vocab.build(words, size=min(50_000, len(set(words)) + 1))
    rows = []
    programs = systems(vocab.encode(words[: options.words]), options.seed)
    for name, batch_size, start in tqdm(programs, "pairs", file=sys.stdout, leave=False):
        speed = statistics.median(pairs_per_second(start, options.seconds) for _ in range(options.repeats))
        ratio = speed / rows[0]["pairs_per_s"] if rows else 1.0
        rows.append({"system": name, "batch_size": batch_size, "pairs_per_s": speed, "ratio": ratio})
    encoding = tqdm(range(options.repeats), "encoding", file=sys.stdout, leave=False)
    seconds = statistics.median(encode_seconds(vocab, words, options.encode) for _ in encoding)
    rows.append({"system": "Vocab.encode", "words": options.encode, "vocabulary": len(vocab), "seconds": seconds})
    return rows


def print_table(rows):
    print(f"{'system':<18}{'batch':>8}{'million pairs/s':>18}{'x reference':>14}")
    *pair_rows, encoding = rows
    for row in pair_rows:
        batch = f"{row['batch_size']:,}" if row["batch_size"] else "all"
        print(f"{row['system']:<18}{batch:>8}{row['pairs_per_s'] / 1e6:>18.3f}{row['ratio']:>14.1f}")
    print(f"Vocab.encode: {encoding['words']:,} words in {encoding['seconds']:.2f} s")


def one_tensorflow_thread():
    import tensorflow as tf  # here, because `helpers` has to come first: it silences TensorFlow's log

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batching", description="How fast pairs are made.")
    parser.add_argument("--corpus", default="docs", help="docs, text8, planted or a path (default: docs)")
    parser.add_argument("--json", metavar="OUT", help="write the rows to this file")
    parser.add_argument("--repeats", type=positive, default=3, help="each figure is a median of so many (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--words", type=at_least(20_000), default=3_000_000, help="pairs of so many words at most")
    parser.add_argument("--encode", type=positive, default=17_000_000, help="words to encode (default: as text8 has)")
    parser.add_argument("--seconds", type=float, default=3.0, help="at most, for one measurement (default: 3)")
    options = parser.parse_args()
    one_tensorflow_thread()
    try:
        corpus = load_corpus(options.corpus)
        check_writable(options.json)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print(f"Corpus {corpus.name}, {len(corpus.words):,} words; the first {options.words:,} at most give pairs.")
    print(f"Window {WINDOW}, one thread, median of {options.repeats}, seed {options.seed}.")
    print("generate_batch/2 is the reference with num_skips=2.")
    with threadpool_limits(1):
        rows = measure(corpus.words, options)
    print_table(rows)
    if options.json:
        shared = {"corpus": corpus.name, "window": WINDOW, "repeats": options.repeats, "seed": options.seed}
        write_json(options.json, [{**row, **shared} for row in rows])


if __name__ == "__main__":
    main()
