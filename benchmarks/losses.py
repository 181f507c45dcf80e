"""Cost and quality: `python -m benchmarks.losses [--corpus PATH] [--seeds 3] [--seconds 12] [--json OUT]`.

Seven tables: time and memory of a step against the size of the vocabulary; quality after the same time of the same
step, at three learning rates, and after the same number of pairs; the three samplers; one setting at a time changed;
half precision. Lesson 06 plots the JSON.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psutil
import tensorflow as tf
from tqdm import tqdm

from benchmarks.options import check_writable, label_of, positive, write_json
from helpers.text.corpus import load_corpus, planted_twin
from helpers.text.skipgram import pair_batches
from helpers.text.vocab import Vocab
from helpers.word2vec.model import frequency_biases, make_tables
from helpers.word2vec.scores import scores, twins_found
from helpers.word2vec.vectors import to_keyed_vectors
from lesson_parts.adagrad import adagrad_step
from lesson_parts.losses import LOSSES, SAMPLERS, draw_samples, full_softmax

COST = {"batch": 256, "dim": 64, "num_sampled": 64}
SIZES = (100, 250, 651, 1_000, 4_000, 10_000, 64_000, 200_000, 1_000_000)
MANY_SAMPLES = (64, 900, 3_600)  # of the sampled softmax, to see where the full one is cheaper
MEMORY_LOSSES = ("full_softmax", "sgns")
FREED_AT_ONCE = {"TF_ENABLE_ONEDNN_OPTS": "0", "MALLOC_MMAP_THRESHOLD_": "1000000"}  # else freed arrays are kept
SAMPLED = ("sampled_softmax", "sgns")  # trained with each sampler
RATES = (0.03, 0.1, 0.3)  # of each loss, when all have the same time
LOOKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # at the scores of a race, as shares of its seconds
TURN = 0.25  # seconds at most that one training of a race goes on before the next one's turn
TABLES = ("machine", "memory", "cost", "rates", "samplers", "sweeps", "precision", "quality")


@dataclass(frozen=True)
class Plan:
    """The hyper-parameters of a run. subsample: its threshold, or None; lr: the learning rate of Adagrad."""

    dim: int = 64
    num_sampled: int = 64
    subsample: float | None = 1e-4
    window: int = 5
    lr: float = 0.1
    batch: int = 1024
    sampler: str = "unigram"


BASE, PLANTED = Plan(), Plan(dim=32, subsample=1e-3)
RACE = Plan(batch=COST["batch"], dim=COST["dim"], num_sampled=COST["num_sampled"], sampler="log_uniform")  # as in cost
SWEEPS = {
    "num_sampled": (4, 16, 64, 256),
    "subsample": (1e-5, 1e-4, 1e-3, None),
    "window": (1, 2, 5, 10),
    "lr": (0.03, 0.1, 0.3, 1.0),
    "dim": (16, 32, 64, 128),
}
DTYPES = (tf.float32, tf.bfloat16, tf.float16)
NOUNS = """
    array axis argument attribute block button cell class client color column command component dimension edge element
    error event example feature field file function graph group image index input instance integer key kernel label
    layer length level line list matrix message method metric model module name node number object operation option
    output package parameter path pixel point process range result row sample sequence server signal string tensor
    test thread token type unit value variable vector version warning weight window word worker
"""


# ---- Training; the same as in lesson 05


def make_loss(name, counts, num_sampled=64, sampler="unigram"):
    """The loss called `name`, with its own sampling: a function of (tables, centers, contexts)."""
    if name == "full_softmax":
        return full_softmax

    def loss(tables, centers, contexts):
        samples = draw_samples(sampler, counts, contexts, num_sampled)
        return LOSSES[name](tables, centers, contexts, samples)

    return loss


def mixed_sgns(tables, centers, contexts, samples, dtype=tf.bfloat16):
    """`sgns` with its matrix product in `dtype`, bfloat16 or float16; tables, sums and the loss stay as they are.

    Micikevicius et al., "Mixed Precision Training", 2018.
    """
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    others = tf.cast(tf.gather(weights, samples.ids), dtype)
    product = tf.matmul(tf.cast(rows, dtype), others, transpose_b=True)
    sampled = tf.cast(product, true.dtype) + tf.gather(biases, samples.ids)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


# ---- Quality


def plural_accuracy(vectors, words):
    """The share of the questions "array is to arrays as file is to ?" answered exactly, among all words."""
    index = {word: i for i, word in enumerate(words)}
    pairs = np.array([(index[n], index[n + "s"]) for n in NOUNS.split() if {n, n + "s"} <= index.keys()]).reshape(-1, 2)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    one, many = pairs.T
    right = 0
    for a, b in pairs:
        cosines = (unit[b] - unit[a] + unit[one]) @ unit.T
        cosines[:, [a, b]] = -np.inf
        cosines[np.arange(len(one)), one] = -np.inf
        right += np.sum((cosines.argmax(axis=1) == many) & (one != a))
    return float(right / max(1, len(pairs) * (len(pairs) - 1)))


def one_score(label, vectors, words):
    """The score that tells most with this corpus: dict of one float."""
    if label == "planted":
        kept = [i for i, word in enumerate(words) if word.startswith("t") and planted_twin(word) in words]
        return {"twins": twins_found(vectors[kept], [words[i] for i in kept])}
    return {"plurals": plural_accuracy(vectors, words)}


def quality(label, vectors, words):
    """All scores that the corpus allows: dict of floats."""
    others = {} if label == "planted" else scores(to_keyed_vectors(vectors, words))
    return {**one_score(label, vectors, words), **others}


class Text:
    """A corpus with its vocabulary and ids."""

    def __init__(self, name, size):
        words = load_corpus(name).words
        self.label = label_of(name)
        self.vocab = Vocab.build(words, min(size, len(set(words)) + 1))
        self.ids = self.vocab.encode(words)


def epochs(text, plan, seed):
    """Batches for ever: an iterator of (centers, contexts), both tf.int32 [batch]."""
    rng = np.random.default_rng(seed)
    keep = plan.subsample and text.vocab.keep_probability(plan.subsample)
    while True:
        for pair in pair_batches(text.ids, plan.batch, plan.window, rng, keep):
            yield tuple(map(tf.constant, pair))


def start(name, text, plan, seed, known):
    """The tables of a run; `known`: their biases start at what the loss can know from the counts alone."""
    tables = make_tables(len(text.vocab), plan.dim, seed)
    if known:
        kept = text.vocab.keep_probability(plan.subsample) if plan.subsample else 1
        tables[2].assign(frequency_biases(name, text.vocab.counts * kept, plan.num_sampled, plan.sampler))
    return tables


def prepared(name, text, plan, seed, known=True, loss=None):
    """The tables of a run, its step, which one batch has compiled, and the batches after that one."""
    tf.random.set_seed(seed)
    tables = start(name, text, plan, seed, known)
    loss = loss or make_loss(name, text.vocab.counts, plan.num_sampled, plan.sampler)
    step, batches = adagrad_step(loss, tables, plan.lr), epochs(text, plan, seed)
    step(*next(batches)).numpy()
    return tables, step, batches


def learn(name, text, plan, seed, pairs, known=True, loss=None, checks=1):
    """Train on so many pairs; returns rows (seconds, pairs, scores), `checks` of them, evenly spaced."""
    tables, step, batches = prepared(name, text, plan, seed, known, loss)
    rows, done, busy = [], plan.batch, 0.0
    for check in range(1, checks + 1):
        begin = time.perf_counter() - busy
        while done * checks < pairs * check:
            step(*next(batches)).numpy()
            done, busy = done + plan.batch, time.perf_counter() - begin
        rows.append({"seconds": busy, "pairs": done, **quality(text.label, tables[0].numpy(), text.vocab.words)})
    return rows


# ---- The tables


def memory(sizes):
    """Rows {loss, vocabulary, peak_mb}: what a step adds to a process that holds its tables and Adagrad's sums."""
    plans = [(name, size) for size in sizes for name in MEMORY_LOSSES]
    spawn = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, FREED_AT_ONCE), spawn.Pool(1, maxtasksperchild=1) as pool:
        peaks = list(tqdm(pool.imap(peak_mb, plans), "memory", len(plans), file=sys.stdout, leave=False))
    return [{"loss": name, "vocabulary": size, "peak_mb": mb} for (name, size), mb in zip(plans, peaks, strict=True)]


def peak_mb(plan):
    """How much the resident memory rises during three steps, looked at every half millisecond."""
    name, size = plan
    step, done = one_step(name, size), threading.Event()
    step()  # compiles, and makes Adagrad's sums of squares, as large as the tables
    seen = [psutil.Process().memory_info().rss]

    def look():
        while not done.wait(0.0005):
            seen.append(psutil.Process().memory_info().rss)

    watch = threading.Thread(target=look)
    watch.start()
    for _ in range(3):
        step()
    done.set()
    watch.join()
    return (max(seen) - seen[0]) / 1e6


def machine():
    """One row, what the cost of a step is bounded by: the GFLOP/s of a matrix product."""
    square = tf.random.normal([1024, 1024])
    return [{"gflops": 2 * 1024**3 / median_seconds(lambda: tf.matmul(square, square)) / 1e9}]


def median_seconds(work):
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        work()[0, 0].numpy()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def cost(sizes, sampler, runs=3):
    """Rows {loss, num_sampled, vocabulary, ms, runs}: ms is the median of the runs, each over all sizes."""
    rows = []
    for same in zip(*(cost_once(sizes, sampler) for _ in range(runs)), strict=True):
        ms = [row["ms"] for row in same]
        rows.append({**same[0], "ms": statistics.median(ms), "runs": ms})
    return rows


def cost_once(sizes, sampler, turns=3):
    """Rows {loss, num_sampled, vocabulary, ms}; the losses take turns, so that noise hits all alike.

    As in lesson 06 each time is that of the fastest of `turns` times 10 calls (2 of the full softmax above 1,000
    words); one turn before warms up.
    """
    rows = []
    for size in tqdm(sizes, "cost", file=sys.stdout, leave=False):
        steps = {(name, COST["num_sampled"]): one_step(name, size, sampler=sampler) for name in LOSSES}
        many = [n for n in MANY_SAMPLES if n < size]
        steps |= {("sampled_softmax", n): one_step("sampled_softmax", size, n, sampler) for n in many}
        times = {key: [] for key in steps}
        for turn in range(1 + turns):
            for key, step in steps.items():
                for _ in range(2 if key[0] == "full_softmax" and size > 1000 else 10):
                    begin = time.perf_counter()
                    step()
                    if turn > 0:
                        times[key].append(1000 * (time.perf_counter() - begin))
        for (name, n), ms in times.items():
            rows.append({"loss": name, "num_sampled": n, "vocabulary": size, "ms": min(ms)})
    return rows


def one_step(name, size, num_sampled=COST["num_sampled"], sampler=RACE.sampler):
    """A step of training on one batch of COST, with tables of `size` rows: a function without arguments."""
    rng = np.random.default_rng(0)
    pairs = [tf.constant(rng.integers(0, size, COST["batch"]), tf.int32) for _ in range(2)]
    loss = make_loss(name, 10**9 // np.arange(1, size + 1), num_sampled, sampler)
    step = adagrad_step(loss, make_tables(size, COST["dim"], 0), 0.1)
    return lambda: step(*pairs).numpy()


class Racer:
    """A training whose clock runs during its steps only: not while pairs are made, nor while scores are computed."""

    def __init__(self, name, text, plan, seed):
        self.run = {"loss": name, "lr": plan.lr, "seed": seed}
        self.text = text
        self.tables, self.step, self.batches = prepared(name, text, plan, seed)
        self.pairs, self.seconds = plan.batch, 0.0

    def go(self, until):
        """Train until the clock stands at `until`, in seconds."""
        while self.seconds < until:
            batch = next(self.batches)
            begin = time.perf_counter()
            self.step(*batch).numpy()
            self.seconds += time.perf_counter() - begin
            self.pairs += len(batch[0])

    def row(self):
        found = one_score(self.text.label, self.tables[0].numpy(), self.text.vocab.words)
        return {**self.run, "seconds": self.seconds, "pairs": self.pairs, **found}


def race(title, racers, seconds):
    """Rows {loss, lr, seed, seconds, pairs, score} of each look; racers take turns, so that noise hits all alike."""
    looks = [[] for _ in racers]
    reached = 0.0
    for share in tqdm(LOOKS, title, file=sys.stdout, leave=False):
        turns = int(np.ceil((share * seconds - reached) / TURN))
        for until in np.linspace(reached, share * seconds, turns + 1)[1:]:
            for racer in racers:
                racer.go(until)
        for racer, rows in zip(racers, looks, strict=True):
            rows.append(racer.row())
        reached = share * seconds
    return [row for rows in looks for row in rows]


def compare_rates(text, plan, seeds, seconds):
    """Rows {corpus, vocabulary, part, loss, lr, seed, seconds, pairs, score}, all of the same time of steps.

    part: "tuning", each loss at each rate with a seed of its own; then "race", each at its best rate, that of the
    highest score at the last look, with the other seeds.
    """
    run = {"corpus": text.label, "vocabulary": len(text.vocab)}
    title = f"{len(text.vocab):,} words"
    plans = [(name, text, replace(plan, lr=lr), seeds) for lr in RATES for name in LOSSES]
    tuning = race(f"{title}, tuning", [Racer(*its) for its in plans], seconds)
    plans = [(name, text, replace(plan, lr=best_rate(tuning, name)), seed) for seed in range(seeds) for name in LOSSES]
    found = race(f"{title}, race", [Racer(*its) for its in plans], seconds)
    return [{**run, "part": part, **row} for part, rows in (("tuning", tuning), ("race", found)) for row in rows]


def best_rate(rows, name):
    """The rate at which a loss has the highest score at the last look."""
    last = {row["lr"]: row.get("twins", row.get("plurals")) for row in rows if row["loss"] == name}
    return max(last, key=last.get)


def compare(text, plan, seeds, pairs, starts=("frequency",), checks=1):
    """Rows {corpus, vocabulary, loss, start, seed, seconds, pairs, scores}: each loss trained on the same pairs."""
    rows = []
    for seed in tqdm(range(seeds), f"{text.label}, seeds", file=sys.stdout, leave=False):
        for name in LOSSES:
            for start in starts:
                run = {"corpus": text.label, "vocabulary": len(text.vocab), "loss": name, "start": start}
                found = learn(name, text, plan, seed, pairs, known=start == "frequency", checks=checks)
                rows += [{**run, "seed": seed, **row} for row in found]
    return rows


def compare_samplers(text, pairs, seeds):
    """Rows {sampler, loss, seed, seconds, pairs, scores}: two losses trained with each sampler, on the same pairs."""
    plans = [(sampler, name, seed) for sampler in SAMPLERS for name in SAMPLED for seed in range(seeds)]
    rows = []
    for sampler, name, seed in tqdm(plans, "samplers", file=sys.stdout, leave=False):
        (row,) = learn(name, text, replace(BASE, sampler=sampler), seed, pairs=pairs)
        rows.append({"sampler": sampler, "loss": name, "seed": seed, **row})
    return rows


def sweep(text, pairs, seeds):
    """Rows {setting, value, seed, seconds, pairs, scores} of SGNS, each with one setting of BASE changed."""
    plans = [(setting, value, seed) for setting, values in SWEEPS.items() for value in values for seed in range(seeds)]
    rows = []
    for setting, value, seed in tqdm(plans, "settings", file=sys.stdout, leave=False):
        (row,) = learn("sgns", text, replace(BASE, **{setting: value}), seed, pairs=pairs)
        rows.append({"setting": setting, "value": value, "seed": seed, **row})
    return rows


def precision(text, pairs, seeds):
    """Rows {dtype, seed, seconds, pairs, scores} of SGNS on "planted", its matrix product in float32 and in halves."""
    rows = []
    for seed in range(seeds):
        for dtype in DTYPES:

            def loss(tables, centers, contexts, dtype=dtype):
                samples = draw_samples("unigram", text.vocab.counts, contexts, PLANTED.num_sampled)
                return mixed_sgns(tables, centers, contexts, samples, dtype)

            found = learn("sgns", text, PLANTED, seed, pairs, loss=loss)
            rows += [{"dtype": dtype.name, "seed": seed, **row} for row in found]
    return rows


def print_rows(title, rows):
    print(f"\n{title}")
    columns = list(dict.fromkeys(column for row in rows for column in row if column != "runs"))
    print(" ".join(f"{column[:16]:>16}" for column in columns))
    for row in rows:
        values = [row.get(column, "") for column in columns]
        texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        print(" ".join(f"{text:>16}" for text in texts))


def arguments():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description="Cost and quality of the losses")
    parser.add_argument("--corpus", default="docs", help="docs, text8 or a path (default: docs)")
    parser.add_argument("--vocabulary", type=positive, default=20_000, help="rows for samplers and settings (20000)")
    parser.add_argument(
        "--small-vocabulary", type=positive, default=10_000,
        help="rows of the tables of the runs that compare the losses on the corpus (default: 10000)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=positive, default=3, help="runs of each comparison (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=12.0,
        help="training time of a run on the corpus in the table `rates`; on planted two thirds, or a sixth (12)",
    )  # fmt: skip
    parser.add_argument(
        "--sampler", choices=SAMPLERS, default=RACE.sampler, help="of the tables `cost` and `rates` (log_uniform)"
    )
    parser.add_argument("--pairs", type=positive, default=2_000_000, help="of each run of samplers and settings")
    parser.add_argument("--same-pairs", type=positive, default=1_000_000, help="of the runs that compare the losses")
    parser.add_argument("--sizes", type=positive, nargs="+", default=SIZES, help="vocabularies of the cost of a step")
    parser.add_argument("--tables", choices=TABLES, nargs="+", default=TABLES, help="which to measure (default: all)")
    parser.add_argument("--json", metavar="OUT", help="write the tables to this file, others in it stay as they are")
    return parser.parse_args()


def races(sampler):
    """The plans of the races on the corpus and on "planted", with the step of the table `cost`."""
    plan = replace(RACE, sampler=sampler)
    return plan, replace(plan, subsample=None)


def measured(options, text, small, planted, on_docs, on_planted):
    """The tables that the options ask for, one after the other: (name, rows). on_...: the plans of `races`."""
    by_seeds, same = options.seeds, options.same_pairs
    work = {
        "machine": machine,
        "memory": lambda: memory(options.sizes[-3:]),
        "cost": lambda: cost(options.sizes, options.sampler),
        "rates": lambda: [
            *compare_rates(Text("planted", 100), on_planted, by_seeds, options.seconds / 6),
            *compare_rates(planted, on_planted, by_seeds, options.seconds * 2 / 3),
            *compare_rates(small, on_docs, by_seeds, options.seconds),
        ],
        "samplers": lambda: compare_samplers(text, options.pairs, by_seeds),
        "sweeps": lambda: sweep(text, options.pairs, by_seeds),
        "precision": lambda: precision(planted, same, by_seeds),
        "quality": lambda: [
            *compare(Text("planted", 100), PLANTED, by_seeds, same, checks=4),
            *compare(planted, PLANTED, by_seeds, same, ("zero", "frequency")),
            *compare(small, BASE, by_seeds, same),
        ],
    }
    for name in TABLES:
        if name in options.tables:
            yield name, work[name]()


def main():
    tf.get_logger().setLevel("ERROR")  # it takes the many steps that are compiled here for one compiled too often
    options = arguments()
    try:
        text, small = (Text(options.corpus, size) for size in (options.vocabulary, options.small_vocabulary))
        planted = Text("planted", 651)
        check_writable(options.json)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    on_docs, on_planted = races(options.sampler)
    settings = {
        **vars(options), "corpus": text.label, "words": len(text.ids), "vocabulary": len(text.vocab),
        "cost": COST, "race": asdict(on_docs), "race_planted": asdict(on_planted), "base": asdict(BASE),
        "planted": asdict(PLANTED),
    }  # fmt: skip
    settings = {name: value for name, value in settings.items() if name not in ("json", "tables")}
    print("Settings:", json.dumps(settings))
    there = options.json and Path(options.json).exists()
    results = {**(json.loads(Path(options.json).read_text()) if there else {}), "settings": settings}
    for name, rows in measured(options, text, small, planted, on_docs, on_planted):
        print_rows(name, rows)
        results[name] = rows
        if options.json:
            write_json(options.json, results)


if __name__ == "__main__":
    main()
