"""Allreduce: `python -m benchmarks.allreduce [--ranks 2 4] [--json OUT] [--repeats 9] [--most-mb 64]`.

Seconds of Horovod's allreduce against message size, and of bare sockets that move the bytes of a ring allreduce.
"""

import argparse
import sys

import numpy as np
from tqdm import tqdm

from benchmarks.options import at_least, check_writable, positive, write_json
from helpers.cluster.ranks import connect
from helpers.exchange.cost_model import allreduce_seconds, fit_line, median_seconds, ring_bytes
from lesson_parts.ring import Sockets, bare_ring

LEAST = 1024  # bytes; each message is 4 times as large as the one before
SLOW = 1 << 22  # from this size on, fewer repeats


def compare_with_sockets(n_bytes, repeats):
    """On every rank: (seconds of Horovod's allreduce of n_bytes, seconds of bare sockets for the same bytes)."""
    import horovod.tensorflow as hvd

    sockets = Sockets(hvd.rank(), hvd.size(), hvd.allgather_object)
    part = np.ones(n_bytes // 4 // sockets.size, np.float32)
    bare = median_seconds(lambda: bare_ring(sockets, part), repeats)
    sockets.close()
    return allreduce_seconds(n_bytes, repeats), bare


def sizes(most_mb):
    """Message sizes in bytes: 1 KB, 4 KB, ... up to most_mb MB."""
    found = [LEAST]
    while 4 * found[-1] <= most_mb << 20:
        found.append(4 * found[-1])
    return found


def measure(size, messages, repeats):
    """One row per message size, with `size` ranks: medians, of the slowest rank."""
    rows = []
    with connect(size, cluster=False) as ranks:
        for n_bytes in tqdm(messages, f"{size} ranks", file=sys.stdout, leave=False):
            times = ranks.run(compare_with_sockets, n_bytes, repeats if n_bytes < SLOW else max(3, repeats // 3))
            horovod, tcp = (max(column) for column in zip(*times))
            rows.append({"ranks": size, "bytes": n_bytes, "seconds": horovod, "tcp_seconds": tcp})
    return rows


def fit(rows):
    """The fitted lines of one number of ranks, for Horovod and for the bare sockets: list of dict."""
    size = rows[0]["ranks"]
    sent = [ring_bytes(size, row["bytes"]) for row in rows]
    lines = []
    for system, column in (("horovod", "seconds"), ("sockets", "tcp_seconds")):
        latency, bandwidth, error = fit_line(sent, [row[column] for row in rows])
        line = {"latency_s": latency, "bandwidth_bytes_per_s": bandwidth, "relative_error": error}
        lines.append({"system": system, "ranks": size, **line})
    return lines


def print_table(rows, fits):
    print(f"{'ranks':>5}{'message':>12}{'Horovod ms':>12}{'sockets ms':>12}{'fraction':>10}")
    for row in rows:
        horovod, tcp = 1e3 * row["seconds"], 1e3 * row["tcp_seconds"]
        print(f"{row['ranks']:>5}{row['bytes'] / 1024:>9,.0f} KB{horovod:>12.3f}{tcp:>12.3f}{tcp / horovod:>10.2f}")
    print("fraction: time of the bare sockets / time of Horovod. Fits: seconds = latency + bytes sent / bandwidth.")
    for line in fits:
        latency, bandwidth = 1e3 * line["latency_s"], line["bandwidth_bytes_per_s"] / 1e6
        print(
            f"{line['ranks']} ranks, {line['system']}: latency {latency:.2f} ms, bandwidth {bandwidth:,.0f} MB/s, "
            f"typical error of the fit {100 * line['relative_error']:.0f} %"
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allreduce", description="Allreduce: time and size.")
    parser.add_argument("--ranks", type=at_least(2), nargs="+", default=[2, 4], help="numbers of ranks (default: 2 4)")
    parser.add_argument("--json", metavar="OUT", help="write rows and fits to this file")
    parser.add_argument("--repeats", type=positive, default=9, help="a figure is the median of so many (default: 9)")
    parser.add_argument("--most-mb", type=positive, default=64, help="the largest message in MB (default: 64)")
    options = parser.parse_args()
    try:
        check_writable(options.json)
    except OSError as error:
        sys.exit(str(error))
    rows, fits = [], []
    for size in options.ranks:
        measured = measure(size, sizes(options.most_mb), options.repeats)
        rows, fits = rows + measured, fits + fit(measured)
    print_table(rows, fits)
    if options.json:
        write_json(options.json, {"rows": rows, "fits": fits, "repeats": options.repeats})


if __name__ == "__main__":
    main()
