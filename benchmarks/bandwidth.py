"""Two hosts on links of 10, 100 and 1,000 Mbit/s and unlimited: `python -m benchmarks.bandwidth`, as root on Linux.

Three strategies of lesson 12, and the block trainer with longer intervals or 16 bits on the wire, on one host alone
and on both, each host with cores of its own (laptop_cluster). Beside the measurement stands what the cost model
predicts from the speed without communication, the fitted latency, and the bandwidth of the link.
"""

import argparse
import functools
import json
import os
from functools import partial
from statistics import median

import numpy as np
import tensorflow as tf

from benchmarks.on_hosts import ENVIRONMENT, add_links, gain_of, place_of, ssh_engines
from benchmarks.options import check_writable, positive, write_json
from benchmarks.strategies import collectives, quality
from benchmarks.training import train_strategy
from helpers.cluster import connect
from helpers.exchange.cost_model import latency_and_bandwidth
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec.block_trainer import count_intervals, train_blocks
from helpers.word2vec.blocks import Blocks
from laptop_cluster import hosts
from lesson_parts.plans import planned, predicted
from lesson_parts.strategies import STRATEGIES, pairs_of

WIRE_SCALE = 64  # brings changes and their squares to where 16-bit numbers are dense
LONGER = Blocks(interval=400_000, intervals=4)


class SixteenBits:
    """horovod.tensorflow, but what it adds up travels as float16: about three digits of numbers from 1e-9 to 1,000."""

    def __init__(self, hvd):
        self._hvd = hvd

    def __getattr__(self, name):
        return getattr(self._hvd, name)

    def allreduce(self, tensor, **options):
        if tensor.dtype != tf.float32:
            return self._hvd.allreduce(tensor, **options)
        options["compression"] = self._hvd.Compression.fp16
        return self._hvd.allreduce(tensor * WIRE_SCALE, **options) / WIRE_SCALE


def train_in_16_bits(*arguments, hvd=None, **options):
    return train_blocks(*arguments, **options, hvd=hvd and SixteenBits(hvd))


COMPARED = {name: STRATEGIES[name] for name in ("canonical", "hot and cold", "blocks")}
COMPARED["blocks, longer intervals"] = STRATEGIES["blocks"]._replace(make=partial(train_blocks, blocks=LONGER))
COMPARED["blocks, 16 bits"] = STRATEGIES["blocks"]._replace(make=train_in_16_bits)


@functools.cache
def read(words, vocabulary):
    """(ids, vocab), once in each process."""
    corpus = load_corpus("docs", progress=False).words[:words]
    vocab = Vocab.build(corpus, vocabulary)
    return vocab.encode(corpus), vocab


def run(name, text, alone, options):
    """On a rank: train, return what was measured; the vectors of rank 0 alone. None on a rank that is to wait."""
    import horovod.tensorflow as hvd

    if alone and hvd.rank():
        return None
    several = None if alone else hvd
    found = train_strategy(COMPARED[name], *read(*text), hvd=several, **options)
    return found if not hvd.rank() else {**found, "vectors": None}


def speed(results):
    return sum(r["pairs"] for r in results) / max(r["seconds"] for r in results)


def measure(name, ranks, machines, text, options):
    """A row for each link, with the speed of one host beside; medians of repeats in turns."""
    ids, vocab = read(*text)
    blocks = STRATEGIES.get(name, STRATEGIES["blocks"]).source == "words"
    budget = {"pairs": options.epochs * pairs_of(ids, vocab)} if blocks else {"seconds": options.seconds}
    alone, apart, both = [], [], {mbit: [] for mbit in options.links}
    for seed in range(options.repeats):
        budget["seed"] = seed
        machines.bandwidth(None)
        alone.append(ranks.run(run, name, text, True, budget)[:1])
        apart.append(ranks.run(run, name, text, False, {**budget, "communicate": False}))
        for mbit in options.links:
            machines.bandwidth(mbit)
            both[mbit].append(ranks.run(run, name, text, False, budget))
    ones = [speed(results) for results in alone]
    shared = {"ones": ones, "one": median(ones), "disabled": median(map(speed, apart))}
    if blocks:  # the ranks wait for each other: quality does not depend on the link
        some = both[options.links[0]]
        shared["quality_one"] = [quality(results[0]["vectors"], vocab) for results in alone]
        shared["quality_two"] = [quality(results[0]["vectors"], vocab) for results in some]
    for mbit, repeats in both.items():
        sent = sum(r["bytes"] for r in repeats[0]) / sum(r["pairs"] for r in repeats[0])
        yield {"strategy": name, "mbit": mbit, "speeds": [*map(speed, repeats)], "bytes_per_pair": sent, **shared}


def plan_longer(name, ids, vocab, size=2):
    """`planned` for fewer intervals of as many more pairs."""
    pairs, messages, sent = planned(name, ids, vocab, size)
    shard = -(-len(ids) // size)
    fewer = count_intervals(shard) / count_intervals(shard, LONGER)
    return pairs * fewer, messages, sent


def plan_halves(name, ids, vocab, size=2):
    """`planned` for numbers of half the size."""
    pairs, messages, sent = planned(name, ids, vocab, size)
    return pairs, messages, sent / 2


PLANS = {"blocks, longer intervals": plan_longer, "blocks, 16 bits": plan_halves}


def predict(row, text, network):
    ids, vocab = read(*text)
    plan = PLANS.get(row["strategy"], planned)
    link = network[1] if row["mbit"] is None else min(network[1], row["mbit"] * 1e6 / 8)
    return predicted(row["strategy"].split(",")[0], ids, vocab, row["disabled"], (network[0], link), plan=plan)


def show(row):
    speeds = f"{row['one']:12,.0f}{median(row['speeds']):12,.0f}"
    print(f"{place_of(row)}{speeds}{gain_of(row)}, {row['bytes_per_pair']:8,.1f} bytes/pair", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandwidth", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--words", type=positive, default=3_000_000, help="of the corpus docs (default: 3000000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000)
    parser.add_argument("--epochs", type=positive, default=5, help="of the block trainer (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of the others (default: 1.5)")
    parser.add_argument("--repeats", type=positive, default=3)
    add_links(parser)
    parser.add_argument("--strategies", nargs="+", choices=[*COMPARED], default=[*COMPARED], metavar="NAME")
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    check_writable(options.json)
    text, rows = (options.words, options.vocabulary), []
    with hosts(2, env=ENVIRONMENT) as machines, ssh_engines(machines), connect(2, address=machines.address) as ranks:
        ranks.view.execute(f"import sys; sys.path.insert(0, {os.getcwd()!r})", block=True)  # ssh begins elsewhere
        network = latency_and_bandwidth(ranks.run(collectives)[0])
        print(f"latency {1e3 * network[0]:.2f} ms, unlimited {network[1] / 1e6:,.0f} MB/s", flush=True)
        for name in options.strategies:
            for row in measure(name, ranks, machines, text, options):
                row["predicted"] = predict(row, text, network)
                rows.append(row)
                show(row)
    if options.json:
        settings = {"words": options.words, "vocabulary": options.vocabulary, "epochs": options.epochs}
        results = {"settings": settings, "latency": network[0], "bandwidth": network[1], "rows": rows}
        write_json(options.json, json.loads(json.dumps(results, default=lambda x: np.asarray(x).tolist())))


if __name__ == "__main__":
    from benchmarks import bandwidth  # under this name ranks find its functions, and keep what they have read

    bandwidth.main()
