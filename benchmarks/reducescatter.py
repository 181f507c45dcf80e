"""How often reducescatter is wrong: `python -m benchmarks.reducescatter [--runs 8] [--calls 20] [--mb 64] [--json F]`.

Each run starts two ranks anew, over Gloo. In every call `hvd.reducescatter` and the one that lesson 31 makes of an
alltoall average random numbers, and each is compared with this rank's part of `hvd.allreduce`.
"""

import argparse
import datetime
import os
import platform
import sys

import numpy as np

from benchmarks.options import check_writable, positive, write_json
from helpers.cluster import connect


def wrong_parts(calls, n):
    """On every rank: how many of its parts were wrong, {"Horovod": int, "alltoall": int}."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    size, rng = hvd.size(), np.random.default_rng(hvd.rank())
    splits = [n // size + (rank < n % size) for rank in range(size)]
    wrong = {"Horovod": 0, "alltoall": 0}
    for _ in range(calls):
        g = tf.constant(rng.normal(size=n).astype("float32"))
        right = np.array_split(hvd.allreduce(g).numpy(), size)[hvd.rank()]
        received, _ = hvd.alltoall(g, splits=splits)
        found = {
            "Horovod": hvd.reducescatter(g, op=hvd.Average),
            "alltoall": tf.reduce_mean(tf.reshape(received, [size, -1]), axis=0),
        }
        for way, part in found.items():
            wrong[way] += not np.allclose(part, right, atol=1e-6)
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--runs", type=positive, default=8)
    parser.add_argument("--calls", type=positive, default=20, help="in each run")
    parser.add_argument("--mb", type=positive, default=64, help="of each rank's numbers, in MiB")
    parser.add_argument("--json", help="where to save the results")
    options = parser.parse_args()
    check_writable(options.json)

    settings = {
        "command": " ".join(["python -m benchmarks.reducescatter", *sys.argv[1:]]),
        "date": str(datetime.date.today()),
        "machine": f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores",
        "calls": options.calls,
        "mb": options.mb,
    }
    rows = []
    for run in range(options.runs):
        with connect(2, cluster=False, controller="gloo") as ranks:
            of_ranks = ranks.run(wrong_parts, options.calls, options.mb * 2**18)
        rows += [{"run": run, "rank": rank, **wrong} for rank, wrong in enumerate(of_ranks)]
        print(f"run {run}: wrong in {options.calls} calls:", *(f"rank {rank} {w}" for rank, w in enumerate(of_ranks)))
        if options.json:
            write_json(options.json, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
