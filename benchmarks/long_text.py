"""A text of 200 million words, from file to vectors: `python -m benchmarks.long_text [--words 200000000] [--ranks 2]`.

Writes a text whose words follow Zipf's law (the k-th most frequent word comes 1 / k times as often as the first),
encodes it by `encode_file`, and trains on it and, for comparison, on its first --short words, with the same vocabulary.
Prints words/s of each part, and the most memory that this process and a rank had. The text has just been written, so it
is read from memory and not from a disk. Needs 2.8 GB in --folder.
"""

import argparse
import re
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.options import check_writable, positive, write_json
from benchmarks.words_per_second import DIM, RANK_ENV
from examples.encode_text import encode_file
from helpers.cluster import RankFailure, connect, report
from helpers.cluster.environment import limit_threads

AT_ONCE = 1_000_000  # words that are written at a time


def write_text(path, n_words, vocabulary, seed=0):
    """A file of so many words, drawn by Zipf's law from so many different ones, 1,000 words a line."""
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz"])
    digits = np.arange(vocabulary)[:, np.newaxis] // 26 ** np.arange(5) % 26
    names = np.array(["".join(row) for row in letters[digits]], object)
    edges, rng = np.cumsum(1 / np.arange(1, vocabulary + 1)), np.random.default_rng(seed)
    with open(path, "w") as file:
        for begin in tqdm(range(0, n_words, AT_ONCE), f"writing {path.name}", file=sys.stdout, leave=False):
            words = names[np.searchsorted(edges, rng.random(min(AT_ONCE, n_words - begin)) * edges[-1])]
            file.writelines(" ".join(words[i : i + 1_000]) + "\n" for i in range(0, len(words), 1_000))


def train_on_rank(text, vocab):
    """On a rank: (words of its shard, seconds of training, the most memory that it had, in MB)."""
    import horovod.tensorflow as hvd

    from helpers.word2vec import train_blocks

    shard = text.of(vocab).shard(hvd.rank(), hvd.size())
    ticks = []

    def tick(step, steps, loss, pairs_per_s):
        ticks.append(time.perf_counter())
        if hvd.rank() == 0 and step % 10 == 0:
            report(step, steps, loss, pairs_per_s)

    train_blocks(shard, vocab, dim=DIM, epochs=1, report=tick, hvd=hvd if hvd.size() > 1 else None)
    return len(shard), ticks[-1] - ticks[0], peak()


def peak():
    """The most memory that this process had until now, in MB."""
    if Path("/proc/self/status").exists():  # (ru_maxrss has there what the process had before it became this one)
        return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def train(text, vocab, n):
    """One row: words/s of all ranks together, and the memory of the one that had most."""
    with connect(n, cluster=False, env=RANK_ENV) as ranks:
        ranks.run(limit_threads, 1)
        words, seconds, megabytes = zip(*ranks.run(train_on_rank, text, vocab, progress=True), strict=True)
    tables = 2 * len(vocab) * DIM * 4 / 1e6
    return {
        "words": sum(words),
        "words_per_s": sum(words) / max(seconds),
        "mb_of_a_rank": max(megabytes),
        "mb_allowed": 3 * tables + 500,
    }


def measure(folder, options):
    """Encodes and trains; returns the results as dict."""
    source = folder / "text.txt"
    write_text(source, options.words, options.vocabulary)
    begin = time.perf_counter()
    vocab, text = encode_file(source, cache_dir=folder)
    seconds = time.perf_counter() - begin
    short = folder / "short"
    text[: options.short].tofile(short)
    runs = {name: [] for name in ("long", "short")}
    for _ in range(options.repeats):
        for name, ids in ("long", text), ("short", replace(text, path=str(short))):
            runs[name].append(train(ids, vocab, options.ranks))
    return {
        "settings": vars(options),
        "gigabytes": source.stat().st_size / 1e9,
        "vocabulary": len(vocab),
        "encoded_words_per_s": options.words / seconds,
        "mb_of_the_kernel": peak(),
        **runs,
    }


def print_results(found):
    print(f"{found['gigabytes']:.2f} GB, {found['vocabulary']:,} words come 5 times or more")
    print(f"encoded: {found['encoded_words_per_s'] / 1e6:.1f} million words/s, the vocabulary included; ", end="")
    print(f"this process had at most {found['mb_of_the_kernel']:,.0f} MB")
    for name in ("long", "short"):
        for run in found[name]:
            print(f"{name:6}{run['words']:>13,} words: {run['words_per_s'] / 1e6:.2f} million words/s, ", end="")
            print(f"a rank had at most {run['mb_of_a_rank']:,.0f} MB (3 x its tables + 500: {run['mb_allowed']:,.0f})")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_text", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--words", type=positive, default=200_000_000)
    parser.add_argument("--short", type=positive, default=20_000_000, help="words of the text to compare with")
    parser.add_argument("--vocabulary", type=positive, default=300_000, help="different words (default: 300,000)")
    parser.add_argument("--ranks", type=positive, default=2)
    parser.add_argument("--repeats", type=positive, default=1)
    parser.add_argument("--folder", metavar="DIR", help="for the text and what is made of it (default: the system's)")
    parser.add_argument("--json", metavar="OUT", help="write the results to this file")
    options = parser.parse_args()
    try:
        check_writable(options.json)
        with tempfile.TemporaryDirectory(prefix="long-text-", dir=options.folder) as folder:
            found = measure(Path(folder), options)
    except (OSError, ValueError, RankFailure) as error:
        sys.exit(str(error))
    print_results(found)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
