"""Workers and parameter servers on two hosts, by link: `python -m benchmarks.servers_bandwidth`, as root on Linux.

One worker and one server on each host, each host with cores of its own, train with the local steps of lesson 16: so
many steps for each pull and push. Beside the measurement stands one host alone, with one worker and one server, and
what its speed, the bytes of a call and the bandwidth of the link predict. Half of all rows live on the other host.
"""

import argparse
import contextlib
import os
import socket
import time
from statistics import median

import numpy as np
import psutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow: it complains of servers that are gone

import tensorflow as tf

from benchmarks.on_hosts import add_links, gain_of, place_of, start_server
from benchmarks.options import check_writable, positive, write_json
from helpers.cluster.parameter_servers import attach_servers
from helpers.cluster.processes import kill
from helpers.cluster.sharded_tables import bundle, shards
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec.pair_dataset import pair_dataset
from laptop_cluster import hosts
from lesson_parts.server_steps import local_word2vec, new_tables, noise, own_pairs

BATCH, NEGATIVES, WINDOW, DIM, LR = 128, 64, 5, 128, 5.0


@contextlib.contextmanager
def servers(machines, n):
    """A cluster of a worker and a server on each of the first n hosts; this process is its coordinator."""
    with socket.create_server((machines.address, 0)) as free:
        chief = f"{machines.address}:{free.getsockname()[1]}"
    spec = {"chief": [chief]}
    for role, port in ("worker", 2300 + n), ("ps", 2310 + n):
        spec[role] = [f"{address}:{port}" for address in machines.addresses[:n]]
    processes = [start_server(machines, i, spec, role, i) for i in range(n) for role in ("worker", "ps")]
    try:
        with attach_servers({"cluster": spec}, timeout=120) as cluster:
            yield cluster
    finally:
        kill(psutil.Process(process.pid) for process in processes)


def make_run(cluster, ids, vocab, k):
    """A function: train so many calls of k steps on new tables; returns (pairs/s, loss of the last fifth)."""
    tables = new_tables(cluster.strategy, vocab, DIM, NEGATIVES)
    steps = bundle(local_word2vec(tables, vocab, LR, k, NEGATIVES), 1)
    source = own_pairs(cluster, ids, k * BATCH, WINDOW)
    parts = [part for table in tables for part in shards(table)]
    start = [part.numpy() for part in parts]

    def run(calls):
        for part, value in zip(parts, start, strict=True):
            part.assign(value)
        begin = time.perf_counter()
        losses = [cluster.coordinator.schedule(steps, (source,)) for _ in range(calls)]
        cluster.coordinator.join()
        seconds = time.perf_counter() - begin
        return calls * k * BATCH / seconds, float(np.mean([loss.fetch() for loss in losses[-calls // 5 :]]))

    run(4)  # compiles, on each worker
    return run


def bytes_of_call(ids, vocab, k):
    """What a call pulls and pushes by the formula of lesson 16."""
    centers, contexts = next(iter(pair_dataset(ids, k * BATCH, WINDOW, seed=1)))
    others = tf.concat([contexts, noise(k * NEGATIVES, vocab)], axis=0)
    rows = [len(np.unique(side)) for side in (centers, others)]
    return 2 * 4 * (sum(rows) * (DIM + 1) + rows[1] * 2)


def measure(machines, ids, vocab, k, options):
    """A row for each link: medians of repeats, with the speed and the loss of one host beside."""
    calls = options.pairs // (k * BATCH)
    machines.bandwidth(None)
    with servers(machines, 1) as cluster:
        run = make_run(cluster, ids, vocab, k)
        alone = [run(calls) for _ in range(options.repeats)]
        del run  # as long as the servers live: later TensorFlow waits for them in vain
    one, of_call = median(speed for speed, _ in alone), bytes_of_call(ids, vocab, k)
    with servers(machines, 2) as cluster:
        run = make_run(cluster, ids, vocab, k)
        for mbit in options.links:
            machines.bandwidth(mbit)
            both = [run(calls) for _ in range(options.repeats)]
            # while each worker makes a call, each host sends half of what one call pulls and pushes
            sending = 0 if mbit is None else of_call / 2 * 8 / (mbit * 1e6)
            row = {"strategy": f"servers, {k} local steps", "mbit": mbit, "bytes_per_pair": of_call / k / BATCH}
            row |= {"speeds": [speed for speed, _ in both], "losses": [loss for _, loss in both], "one": one}
            row |= {"ones": [speed for speed, _ in alone], "losses_one": [loss for _, loss in alone]}
            yield row | {"predicted": 2 * k * BATCH / (k * BATCH / one + sending)}
        del run


def show(row):
    losses = f"loss {median(row['losses']):.3f}, one host {median(row['losses_one']):.3f}"
    print(f"{place_of(row)}{gain_of(row)}, {losses}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.servers_bandwidth", description=__doc__.partition("\n\n")[2]
    )
    parser.add_argument("--words", type=positive, default=1_000_000, help="of the corpus docs (default: 1000000)")
    parser.add_argument("--vocabulary", type=positive, default=10_000)
    parser.add_argument("--steps", nargs="+", type=positive, default=[50, 400], help="local steps (default: 50 400)")
    parser.add_argument("--pairs", type=positive, default=512_000, help="of all workers, each time (default: 512000)")
    parser.add_argument("--repeats", type=positive, default=3)
    add_links(parser)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    check_writable(options.json)
    words = load_corpus("docs", progress=False).words[: options.words]
    vocab, rows = Vocab.build(words, options.vocabulary), []
    passages = np.array_split(vocab.encode(words), 1_000)
    ids = np.concatenate([passages[i] for i in np.random.default_rng(0).permutation(1_000)])
    with hosts(2) as machines:
        for k in options.steps:
            for row in measure(machines, ids, vocab, k, options):
                rows.append(row)
                show(row)
    if options.json:
        settings = {"words": options.words, "vocabulary": options.vocabulary, "pairs": options.pairs}
        write_json(options.json, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
