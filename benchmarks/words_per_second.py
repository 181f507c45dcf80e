"""Speed and quality beside gensim: `python -m benchmarks.words_per_second [--corpus PATH] [--epochs 5] [--ranks 2]`.

Trains the same text (words that come at least 5 times, 128 dimensions, window 5, 5 negatives, subsampling 1e-4) with
- blocks: `helpers.word2vec.block_trainer`, its compiled loop, on 1 rank and on --ranks ranks, one thread each;
- threads: the same in one process with --ranks threads on shared tables;
- graph: its products of matrices in TensorFlow, on 1 rank with one thread;
- gensim: its Word2Vec with --ranks worker threads, from a list of sentences and from a file (its corpus_file); the
  faster one counts;
- with --against COMMAND: any program that takes word2vec.c's options, with --ranks threads (see other_programs.py);
- canonical: the loop of the articles on Horovod: `generate_batch` draws 64 to 128 pairs, NCE with 64 samples, sparse
  gradients. It is far too slow for whole epochs: --steps steps are timed, its seconds are extrapolated, and it
  has no scores.

words_per_s are words of the text, also those that subsampling drops. Only training is timed, not the vocabulary, the
tables (of rows and of random words), the start of the ranks or the compilation. gensim and COMMAND do not count their
pairs: they are given those of blocks on 1 rank, which subsamples in the same way and counts as many pairs as random
windows have in the mean. All get the text in lines of 1,000 words. Speeds are medians and scores means over --repeats
seeds; the systems take turns. word2vec.c has no option for a seed: there, the seeds only repeat it.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks import roofline
from benchmarks.options import check_writable, positive, write_json
from benchmarks.other_programs import SENTENCE, Program, ProgramFailure, Text, how_timed, median_times, times_of
from helpers.cluster import RankFailure, connect, report
from helpers.cluster.environment import limit_threads
from helpers.text.corpus import load_corpus
from helpers.text.skipgram import generate_batch, shard
from helpers.text.vocab import Vocab
from helpers.word2vec.scores import scores
from helpers.word2vec.vectors import to_keyed_vectors

DIM, WINDOW, NEGATIVES, THRESHOLD, MIN_COUNT = 128, 5, 5, 1e-4, 5
SAMPLES = 64
RANK_ENV = {
    "HOROVOD_CYCLE_TIME": "20",  # ms; blocks train on while they communicate, so to look every ms is a waste
    "TF_USE_LEGACY_KERAS": "1",  # TensorFlow imports Keras at once: this one is 80 MB smaller than Keras 3
}
SCORES = {"wordsim353": "WordSim-353", "simlex999": "SimLex-999", "analogy": "analogies"}  # and how they are written


def train_on_rank(shards, vocab, epochs, seed, how):
    """On a rank: (vectors, or None on all but rank 0, seconds, pairs, MB of memory with its part of shared pages, and
    what `roofline.measured` found). how: "loop", "rule" (the loop, exchanges by the rule of lesson 14), "graph" or a
    number of threads of the loop."""
    import horovod.tensorflow as hvd
    import psutil

    from examples.stopwatch import Stopwatch
    from helpers.word2vec import Blocks, bounded_changes, schedule
    from helpers.word2vec.block_trainer import block_changes, train_blocks

    ticks, compiling = [], []

    def tick(step, steps, loss, pairs_per_s):
        if not ticks:
            compiling.append(stopwatch.spent["compiling"])
            stopwatch.spent.clear()
        ticks.append((time.perf_counter(), pairs_per_s))
        if hvd.rank() == 0 and step % 10 == 0:
            report(step, steps, loss, pairs_per_s)

    settings = {"dim": DIM, "window": WINDOW, "negatives": NEGATIVES, "threshold": THRESHOLD, "epochs": epochs}
    if how == "graph":
        settings["block_changes"] = block_changes
    else:
        settings["threads"] = how if isinstance(how, int) else 1
    if how == "rule":
        settings["blocks"], settings["lr"] = schedule(hvd.size(), vocab)
        settings["merge_changes"] = bounded_changes
    stopwatch = Stopwatch(hvd if hvd.size() > 1 else None)
    watched = {"report": tick, "watch": stopwatch.watch, "hvd": stopwatch.hvd}
    vectors = train_blocks(shards[hvd.rank()], vocab, **settings, seed=seed, **watched)
    seconds = ticks[-1][0] - ticks[0][0]
    memory = psutil.Process().memory_full_info()
    megabytes = getattr(memory, "pss", memory.uss) / 1e6  # only Linux has pss
    found = roofline.measured(stopwatch.spent, len(vocab), DIM, Blocks(window=WINDOW), how == "graph")
    found["compiling"] = compiling[0]
    return vectors if hvd.rank() == 0 else None, seconds, ticks[-1][1] * seconds, megabytes, found


def canonical_on_rank(shards, vocab, steps, seed):
    """On a rank: the seconds that a pair takes."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    from helpers.word2vec.model import make_step, make_tables

    tables = make_tables(len(vocab), DIM, seed)
    hvd.broadcast_variables(tables, 0)
    step = make_step(tables, SAMPLES, hvd)
    part = shards[hvd.rank()]
    rng, pairs = np.random.default_rng([seed, hvd.rank()]), 0
    for number in range(steps + 10):
        if number == 10:
            begin, pairs = time.perf_counter(), 0
        centers, contexts = generate_batch(part, 2 * int(rng.integers(32, 65)), 2, WINDOW, rng)
        step(tf.constant(centers), tf.constant(contexts), 0.025)
        pairs += len(centers)
    return (time.perf_counter() - begin) / pairs


def train_on_ranks(n, ids, vocab, epochs, seed, how="loop"):
    """What `train_on_rank` returns on each of n ranks, which share the ids of a text."""
    from helpers.word2vec.blocks import interleave

    with connect(n, cluster=False, env=RANK_ENV) as ranks:
        ranks.run(limit_threads, 1)
        return ranks.run(train_on_rank, interleave(ids, n), vocab, epochs, seed, how, progress=True)


def run_blocks(n, text, options, seed, how="loop"):
    results = train_on_ranks(n, text.ids, text.vocab, options.epochs, seed, how)
    vectors, seconds, pairs, megabytes, time_of_ranks = zip(*results, strict=True)
    memory = {"mb_per_rank": max(megabytes), "mb_of_tables": 2 * len(text.vocab) * DIM * 4 / 1e6}
    found = quality(vectors[0][1:], text.vocab.words[1:])
    return {"seconds": max(seconds), "pairs": sum(pairs), "time_of_rank_0": time_of_ranks[0], **memory, **found}


def run_graph(n, text, options, seed):
    return run_blocks(1, text, options, seed, "graph")


def run_threads(n, text, options, seed):
    """One process with n threads."""
    return run_blocks(1, text, options, seed, n)


def run_canonical(n, text, options, seed):
    with connect(n, cluster=False, env={"TF_USE_LEGACY_KERAS": "1"}) as ranks:  # as the others, so one import for all
        ranks.run(limit_threads, 1)
        shards = [shard(text.ids, rank, n) for rank in range(n)]
        pair = max(ranks.run(canonical_on_rank, shards, text.vocab, options.steps, seed))
    return {"seconds_of_a_pair": pair / n, **dict.fromkeys(SCORES)}


def run_gensim(reads, n, text, options, seed):
    """reads: "list" of sentences or "file"."""
    source = text.file if reads == "file" else text.words
    model, seconds = train_gensim(source, n, options.epochs, seed, MIN_COUNT)
    found = quality(model[text.vocab.words[1:]], text.vocab.words[1:])
    return {"system": "gensim", "reads": reads, "seconds": seconds, **found}


def train_gensim(text, workers, epochs, seed, min_count):
    """gensim's Word2Vec with the settings of this benchmark: (its KeyedVectors, seconds of training).

    text: a list of words, or the Path of a file with a sentence in each line.
    """
    from gensim.models import Word2Vec

    settings = {"sg": 1, "negative": NEGATIVES, "sample": THRESHOLD, "min_count": min_count, "workers": workers}
    model = Word2Vec(vector_size=DIM, window=WINDOW, seed=seed, **settings)
    if isinstance(text, Path):
        source = {"corpus_file": str(text)}
    else:
        source = {"corpus_iterable": [text[i : i + SENTENCE] for i in range(0, len(text), SENTENCE)]}
    model.build_vocab(**source)
    size = {"total_examples": model.corpus_count, "total_words": model.corpus_total_words}
    begin = time.perf_counter()
    model.train(**source, **size, epochs=epochs)
    return model.wv, time.perf_counter() - begin


def run_program(n, text, options, seed):
    """The program of --against. The words that it and we know are scored, the most frequent first."""
    settings = {"size": DIM, "window": WINDOW, "negative": NEGATIVES, "sample": THRESHOLD, "min-count": MIN_COUNT}
    keyed, speed, wall = options.against.train(text.file, {**settings, "threads": n, "iter": options.epochs})
    words = [word for word in text.vocab.words[1:] if word in keyed]
    if not words:
        raise ProgramFailure(f"{options.against.name} wrote vectors, but of no word of the text")
    times = times_of(speed, wall, options.epochs * text.counted())
    return {"system": options.against.name, **times, **quality(keyed[words], words)}


def quality(vectors, words):
    found = scores(to_keyed_vectors(vectors, words))
    return {name: found[name] for name in SCORES}


def frequent(words):
    """The vocabulary of the words that come at least MIN_COUNT times. ValueError when there are none."""
    counts = Counter(words)
    size = sum(count >= MIN_COUNT for word, count in counts.items() if word != "UNK")
    if not size:
        raise ValueError(f"no word of the corpus comes {MIN_COUNT} times: its {len(words):,} words are too few")
    return Vocab.from_counts(counts, size + 1)


def turns(options):
    """{(system, ranks or threads): its function}, in the order of the table; where ranks are 1, blocks come once."""
    n = options.ranks
    found = {("graph", 1): run_graph, ("blocks", 1): run_blocks, ("blocks", n): run_blocks}
    if n > 1:
        found["threads", n] = run_threads
    found |= {(f"gensim, {reads}", n): partial(run_gensim, reads) for reads in ("list", "file")}
    if options.against:
        found["against", n] = run_program
    return {**found, ("canonical", n): run_canonical}


def measure(words, vocab, options):
    """All rows of the table: list of dict; the systems take turns, so that a busy minute hits all of them."""
    runs = {}
    with tempfile.TemporaryDirectory(prefix="w2v-") as folder:
        text = Text.write(words, vocab, Path(folder, "text.txt"))
        for seed in range(options.seed, options.seed + options.repeats):
            for (system, n), run in tqdm(turns(options).items(), f"seed {seed}", file=sys.stdout, leave=False):
                found = run(n, text, options, seed)
                pairs = found.get("pairs") or runs["blocks", 1][-1]["pairs"]
                if system == "canonical":
                    found["seconds"] = pairs * found.pop("seconds_of_a_pair")
                runs.setdefault((system, n), []).append({**found, "pairs": pairs})
    return with_faster_gensim([row(system, n, found, len(words), options) for (system, n), found in runs.items()])


def with_faster_gensim(rows):
    """The rows with one of gensim, the faster one, that says how many words/s the other way has."""
    slow, fast = sorted((row for row in rows if "reads" in row), key=lambda row: row["words_per_s"])
    best = {**fast, "other_words_per_s": slow["words_per_s"]}
    return [best if row is fast else row for row in rows if row is not slow]


def row(system, n, runs, n_words, options):
    """One row: medians of seconds and speeds, means of scores."""
    speeds = {
        "words_per_s": statistics.median(options.epochs * n_words / run["seconds"] for run in runs),
        "pairs_per_s": statistics.median(run["pairs"] / run["seconds"] for run in runs),
        "seconds": statistics.median(run["seconds"] for run in runs),
    }
    known = {name: [run[name] for run in runs if run[name] is not None] for name in SCORES}
    means = {name: statistics.mean(values) if values else None for name, values in known.items()}
    special = {name: max(run[name] for run in runs) for name in ("mb_per_rank", "mb_of_tables") if name in runs[0]}
    special |= {"reads": runs[0]["reads"]} if "reads" in runs[0] else {}
    special |= median_times(runs) if "wall_seconds" in runs[0] else {}
    typical = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    special |= {"time_of_rank_0": typical["time_of_rank_0"]} if "time_of_rank_0" in typical else {}
    return {
        "system": runs[0].get("system", system),
        "ranks": n,
        **speeds,
        **means,
        **special,
        "epochs": options.epochs,
        "seed": options.seed,
        "repeats": len(runs),
        "extrapolated": system == "canonical",
    }


def print_table(rows, steps):
    gensim = next(row for row in rows if row["system"] == "gensim")
    print(f"{'system':<11}{'ranks':>6}{'words/s':>12}{'x gensim':>10}{'pairs/s':>13}{'seconds':>10}", end="")
    print(f"{'WordSim':>9}{'SimLex':>8}{'analogy':>9}")
    for row in rows:
        ratio = row["words_per_s"] / gensim["words_per_s"]
        mark = "*" if row["extrapolated"] else " " if row.get("reports_speed", True) else "+"
        print(f"{short(row):<11}{row['ranks']:>6}{row['words_per_s']:>12,.0f}{ratio:>10.2f}", end="")
        print(f"{row['pairs_per_s']:>13,.0f}{row['seconds']:>10,.1f}{mark}", end="")
        print("".join(f"{'-' if row[name] is None else format(row[name], '.3f'):>8}" for name in SCORES))
    print(f"* extrapolated from {steps} steps. graph, blocks, canonical: ranks; others: threads.")
    print("Pairs of those that do not count them: as blocks on 1 rank.")
    other = {"file": "list", "list": "file"}[gensim["reads"]]
    ratio = gensim["other_words_per_s"] / gensim["words_per_s"]
    print(f"gensim reads its sentences from a {gensim['reads']}; from a {other} it does {ratio:.2f} x as many words/s.")
    for row in rows:
        if "mb_per_rank" in row:
            print(f"{row['system']}, {row['ranks']}: {row['mb_per_rank']:,.0f} MB a process at the end, ", end="")
            print(f"of which its two tables are {row['mb_of_tables']:,.0f} MB")
            print(*(f"  rank 0: {line}" for line in roofline.describe(row["time_of_rank_0"])), sep="\n")
        if "wall_seconds" in row:
            print(how_timed(row))


def short(row):
    """The name of a row's system where there is room for 11 characters."""
    return row["system"][:11]


def draw(rows, corpus, path):
    """A figure of speed and quality beside gensim, written to `path`."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgba

    from helpers.plots import COLORS, SERIAL, use_style

    use_style()
    names = [f"{short(row)}, {row['ranks']}" for row in rows]
    gensim = next(row for row in rows if row["system"] == "gensim")
    colors = {"graph": COLORS[1], "blocks": COLORS[0], "threads": COLORS[3], "gensim": COLORS[2], "canonical": SERIAL}
    fig, (speed, scored) = plt.subplots(2, 1, figsize=(6, 6.5))  # legible on a phone, too
    color = [to_rgba(colors.get(row["system"], "#E69F00"), 0.6 if row["ranks"] == 1 else 1) for row in rows]
    bars = speed.barh(names, [row["words_per_s"] / 1e6 for row in rows], color=color)
    speed.bar_label(bars, [f"{row['words_per_s'] / gensim['words_per_s']:.2g} x" for row in rows], padding=3)
    fastest = max(rows, key=lambda row: row["words_per_s"])
    ratio = fastest["words_per_s"] / gensim["words_per_s"]
    speed.set(xlabel="million words/s")
    speed.set_title(f"{ratio:.1f} times gensim's words/s on {corpus} ({short(fastest)}, {fastest['ranks']})")
    speed.invert_yaxis()
    speed.margins(x=0.12)
    known = [i for i, row in enumerate(rows) if row["wordsim353"] is not None]
    for i, which in enumerate(known):
        wide = 0.75 / len(known)
        place = [j + wide * (i - (len(known) - 1) / 2) for j in range(len(SCORES))]
        heights = [rows[which][name] for name in SCORES]
        scored.bar(place, heights, 0.92 * wide, color=color[which], label=names[which])
    scored.set(xticks=range(len(SCORES)), xticklabels=SCORES.values(), ylabel="score")
    scored.set_title(f"Scores of the vectors, means of {rows[0]['repeats']} seeds")
    scored.legend()
    fig.savefig(path, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.words_per_second", description="Speed and quality of word2vec beside gensim."
    )
    parser.add_argument("--corpus", default="docs", help="docs, text8, planted or a path (default: docs)")
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--ranks", type=positive, default=2, help="ranks, and threads of the others (default: 2)")
    parser.add_argument("--against", metavar="COMMAND", help="also run a program with word2vec.c's options")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=positive, default=3, help="so many seeds from --seed on (default: 3)")
    parser.add_argument("--steps", type=positive, default=300, help="of the canonical loop (default: 300)")
    parser.add_argument("--json", metavar="OUT", help="write the rows to this file")
    parser.add_argument("--figure", metavar="OUT", help="draw them into this PNG")
    options = parser.parse_args()
    for ending in signal.SIGTERM, signal.SIGHUP:
        signal.signal(ending, signal.default_int_handler)  # as Ctrl-C: what runs beside us ends too
    try:
        options.against = Program.find(options.against) if options.against is not None else None
        corpus = load_corpus(options.corpus)
        vocab = frequent(corpus.words)
        check_writable(options.json, options.figure)
        print(f"Corpus {corpus.name}: {len(corpus.words):,} words, {len(vocab) - 1:,} of them different and frequent.")
        rows = measure(corpus.words, vocab, options)
    except (OSError, ValueError, RankFailure, ProgramFailure) as error:
        sys.exit(str(error))
    print_table(rows, options.steps)
    if options.json:
        write_json(options.json, [{**row, "corpus": Path(corpus.name).name} for row in rows])
    if options.figure:
        draw(rows, Path(corpus.name).name, options.figure)


if __name__ == "__main__":
    main()
