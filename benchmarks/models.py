"""What a step of each model of the course costs: `python -m benchmarks.models [--turns 5] [--json OUT] [--figure OUT]`.

Two ranks make the steps of lessons 12, 28, 29 and 30 in three ways, which take turns: rank 0 alone, both beside each
other without an exchange, and both together. The models are those of the lessons: the cells that define them are taken
from the notebooks. Latency and bandwidth are measured before each model; Horovod's timeline counts the messages. The
prediction is that of lesson_parts/plans.py, from the time beside each other. All seeds are fixed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import date
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import tensorflow as tf

from benchmarks.more_strategies import read
from benchmarks.options import check_writable, positive, write_json
from helpers.cluster.ranks import connect
from helpers.exchange.cost_model import bytes_sent, latency_and_bandwidth, ring_bytes, time_collectives
from helpers.plots import median_and_range, table
from helpers.text.skipgram import shard
from lesson_parts.digits import cnn, compiled, digits
from lesson_parts.plans import planned, predicted
from lesson_parts.rotation import rotated
from lesson_parts.strategies import STRATEGIES, batches, start_tables
from lesson_parts.turns import count_messages

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CELLS = {  # of each lesson the cells that define its models and batches, by a text in them
    28: ("def twenty(", "def model_of(", "def averaging(", "def step_of("),
    29: (
        *("from lesson_parts.dates import", "x, y = examples(", "class Encoder(", "class Decoder(", "class Seq2seq("),
        *("def compiled_step(", "def date_loss(", "def date_batches(", "def sources("),
    ),
    30: (
        *("layers = tf.keras.layers", "class Block(", "class Encoder(", "crossentropy = ", "def started("),
        *("def compiled_step(", "def joint_step(", "def text_batches(", "def hide("),
        *("def masked_loss(", "def log_shares(", "def masked_step("),
    ),
}
IMAGES = 32  # of a rank in a step, as in lesson 28
ENCODER_WORDS = 4_000  # as in lesson 30
TIMELINE = {"HOROVOD_TIMELINE": "DYNAMIC"}  # it is off until a rank starts it
LEFT = ("twenty", "cnn", "dates", "encoder")  # in the figure their names stand left of the dot
WAYS = ("alone", "beside", "together")


# ---- The models, on a rank. Each is: step_of(hvd or None) -> step(*batch), batches, (tensors, bytes) of a step


def lesson(number, **given):
    """A module in which the CELLS of a lesson have run; `given` stands in it before."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    module = ModuleType(path.stem)
    vars(module).update(given)
    for text in CELLS[number]:
        source = next(source for source in sources if text in source)
        exec(source.removeprefix("%%px --local\n"), vars(module))
    return module


def dense(weights):
    """The tensors and bytes of a step that averages a gradient for each of these weights."""
    return len(weights), ring_bytes(2, 4 * sum(int(tf.size(weight)) for weight in weights))


def word2vec(name, hvd, text, _):
    ids, vocab = text
    strategy = STRATEGIES[name]
    source = batches(strategy, shard(ids, hvd.rank(), 2), vocab, np.random.default_rng(hvd.rank()))
    some = [(*next(source), 0.1) for _ in range(3 if strategy.local else 20)]
    return lambda ways: strategy.make(start_tables(vocab), ways), some, planned(name, ids, vocab)[1:]


def images(name, *_):
    import tf_keras
    from horovod.tensorflow.keras import DistributedOptimizer

    given = {"tf": tf, "tf_keras": tf_keras, "DistributedOptimizer": DistributedOptimizer}
    found = lesson(28, cnn=cnn, compiled=compiled, **given)
    model_of = partial(found.model_of, vars(found)[name])
    batch = [side[:IMAGES] for side in digits()[0]]

    def step_of(hvd):
        return found.step_of(model_of(), found.averaging() if hvd else found.plain())

    return step_of, [batch], dense(model_of().trainable_weights)


def dates(hvd, *_):
    found = lesson(29)
    model = found.started()
    weights, source = model.trainable_variables, found.sources(hvd.rank(), 2)["same bucket"]

    def step_of(hvd):
        adam, loss = tf.keras.optimizers.Adam(), partial(found.date_loss, model)
        return found.compiled_step(loss, weights, adam, found.DATES, hvd, clip_after=1.0)

    return step_of, [next(source) for _ in range(6)], dense([weight.value for weight in weights])


def masked_words(hvd, _, text):
    ids, vocab = text
    found = lesson(30, vocab=vocab)
    encoder = found.started(found.Encoder, np.ones([1, 20], np.int32))
    source = found.text_batches(shard(ids, hvd.rank(), 2), np.random.default_rng(hvd.rank()))
    guess = [tf.zeros([found.DIM, found.DIM])] + 3 * [tf.zeros(found.DIM)]  # as many weights on top
    plan = dense([weight.value for weight in encoder.trainable_variables] + guess)
    return partial(found.masked_step, encoder, 999), [next(source) for _ in range(3)], plan


MODELS = {
    "word2vec, canonical": partial(word2vec, "canonical"),
    "word2vec, hot and cold": partial(word2vec, "hot and cold"),
    "twenty": partial(images, "twenty"),
    "cnn": partial(images, "cnn"),
    "wide": partial(images, "wide"),
    "dates": dates,
    "encoder": masked_words,
}


# ---- Measured


def time_rounds(step, some, rounds):
    """(ms, bytes that this rank sends) of a step, in so many rounds of all batches; the ranks begin together."""
    import horovod.tensorflow as hvd

    hvd.allreduce(tf.zeros(1))
    sent, begin = bytes_sent(), time.perf_counter()
    for batch in rounds * some:
        step(*batch)
    n = max(1, rounds * len(some))
    return 1e3 * (time.perf_counter() - begin) / n, (bytes_sent() - sent) / n


def take_turns(model, texts, turns, seconds, path):
    """On a rank: (tensors, bytes) by formula, {way: (ms, bytes) of a step of each turn}, steps in the timeline."""
    import horovod.tensorflow as hvd

    step_of, some, plan = model(hvd, *texts)
    apart, together = step_of(None), step_of(hvd)
    for step in (apart, together):
        time_rounds(step, some, 1)  # compiles it
    ms, _ = time_rounds(together, some, 1)
    rounds = max(1, round(float(hvd.broadcast(1e3 * seconds / ms / len(some), root_rank=0))))
    found = {way: [] for way in WAYS}
    for turn in range(turns):
        for way in rotated(WAYS, turn):
            idle = way == "alone" and hvd.rank() > 0
            step = together if way == "together" else apart
            found[way].append(time_rounds(step, some, 0 if idle else rounds))
    hvd.start_timeline(path)
    time.sleep(0.2)  # until it has begun
    for batch in rounds * some:
        together(*batch)
    time.sleep(0.2)  # until all is written
    hvd.stop_timeline()
    return plan, found, rounds * len(some)


def measure(ranks, name, texts, options, folder):
    """Of a model all that is measured, as `take_turns` says; of two ranks the slower one counts."""
    path = f"{folder}/{name}.json"
    timings = ranks.run(time_collectives)[0]
    of_ranks = ranks.run(take_turns, MODELS[name], texts, options.turns, options.seconds, path)
    (tensors, sent), _, steps = of_ranks[0]
    found = np.array([[found[way] for way in WAYS] for _, found, _ in of_ranks])  # [rank, way, turn, (ms, bytes)]
    seen, messages = np.divide(count_messages(path), steps)
    counts = {"tensors": tensors, "bytes": sent, "tensors_counted": seen, "messages_counted": messages}
    counts["bytes_counted"] = found[:, WAYS.index("together"), :, 1].mean()
    ms = dict(zip(WAYS, found[..., 0].max(axis=0).tolist()))
    return {"model": name, **counts, "steps_of_a_turn": steps, "ms": ms, "timings": timings}


def predicted_ms(row, network, messages):
    """Of each turn the ms of a step together: a step counts as a pair of `lesson_parts.plans.predicted`."""

    def plan(*_):
        return 1, messages, row["bytes"]

    return [2e3 / predicted(row["model"], None, None, 2e3 / ms, network, plan=plan) for ms in row["ms"]["beside"]]


def predict(rows):
    """Latency in s and bandwidth in bytes/s of the whole run; each row gets its predictions."""
    network = latency_and_bandwidth([timing for row in rows for timing in row["timings"]])
    for row in rows:
        together = np.array(row["ms"]["together"])
        for kind in ("messages_counted", "tensors"):
            expected = predicted_ms(row, network, row[kind])
            row[f"predicted_by_{kind}"] = expected
            row[f"ratio_by_{kind}"] = (expected / together).tolist()
    return network


# ---- Shown


def show(rows):
    """The table as Markdown: medians of the turns, with the lowest and the highest."""
    body = []
    for row in rows:
        sent = f"{row['bytes'] / 1e6:.3f}", f"{row['bytes_counted'] / 1e6:.3f}"
        counts = f"{row['tensors_counted']:.0f}", f"{row['messages_counted']:.1f}"
        times = [median_and_range(row["ms"][way], 1) for way in WAYS]
        ratios = [median_and_range(row[f"ratio_by_{kind}"]) for kind in ("messages_counted", "tensors")]
        predicted = f"{np.median(row['predicted_by_messages_counted']):.1f}"
        body.append([row["model"], *sent, *counts, *times, predicted, *ratios])
    head = ["model", "MB a step, formula", "counted", "tensors", "messages", *(f"ms {way}" for way in WAYS)]
    head += ["ms predicted", "predicted / measured", "the same, each tensor a message"]
    return table(head, body).data


def draw(rows, path):
    """Measured against predicted ms of a step, written to `path`: medians, and the range of the turns."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from helpers.plots import COLORS, SERIAL, use_style

    use_style()
    figure, axis = plt.subplots(figsize=(4.6, 4.6))
    medians = {}
    for row in rows:
        x, turns = np.median(row["predicted_by_messages_counted"]), row["ms"]["together"]
        y = np.median(turns)
        medians[row["model"]] = x, y
        left = row["model"] in LEFT
        axis.plot([x, x], [min(turns), max(turns)], color=COLORS[0], alpha=0.4, lw=3)
        axis.plot(x, y, "o", color=COLORS[0])
        name = row["model"].replace(", ", ",\n")
        text = axis.annotate(name, (x, y), (-8 if left else 8, 0), "data", "offset points", va="center")
        text.set(ha="right" if left else "left", in_layout=False)
    points = np.array([*medians.values()])
    ends = points.min() / 2.5, 2.5 * points.max()
    axis.plot(ends, ends, "--", color=SERIAL, lw=1)
    low, high = np.sort(points[:, 1] / points[:, 0])[[0, -1]]
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axis.set(xlabel="ms a step, predicted", ylabel="ms a step, measured")
    figure.suptitle(f"A step takes {low:.1f} to {high:.1f} times as long\nas predicted", x=0.02, ha="left")
    figure.savefig(path, dpi=150, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--corpus", default="docs", help="docs, text8, planted or a path (default: docs)")
    parser.add_argument("--words", type=positive, default=400_000, help="so many words of it (default: 400000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000, help="of word2vec (default: 10000)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS], metavar="MODEL")
    parser.add_argument("--turns", type=positive, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn, together (default: 0.3)")
    parser.add_argument("--json", metavar="OUT", help="write what was measured to this file")
    parser.add_argument("--figure", metavar="OUT", help="draw it into this PNG")
    options = parser.parse_args()
    try:
        check_writable(options.json, options.figure)
        sizes = options.vocabulary, min(ENCODER_WORDS, options.vocabulary)
        texts = [read(options.corpus, size, options.words) for size in sizes]
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    with connect(2, cluster=False, env=TIMELINE) as ranks, tempfile.TemporaryDirectory() as folder:
        rows = [measure(ranks, name, texts, options, folder) for name in options.models]
    latency, bandwidth = predict(rows)
    print(show(rows))
    print(f"latency {1e3 * latency:.2f} ms, bandwidth {bandwidth / 1e6:,.0f} MB/s")
    if options.json:
        network = {"latency_s": latency, "bandwidth_bytes_per_s": bandwidth}
        settings = {"date": str(date.today()), "cores": os.cpu_count(), "words": options.words, "images": IMAGES}
        settings |= {"vocabularies": sizes, "turns": options.turns, "seconds": options.seconds}
        write_json(options.json, {"settings": settings, "network": network, "rows": rows})
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
