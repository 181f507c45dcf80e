"""Lesson 19's step with other cycle times of Horovod: `python -m benchmarks.cycle_time [--cycles 1 0.1] [--turns 2]`.

A cycle is how often Horovod looks for work, in ms; it is read when the ranks start, so each measurement has new ones.
They run the lesson's own `%%px` cells, and time four kinds of its step, from no exchange to the whole one, three
times in turns, on a table of --rows rows. Cycle times take turns, too. All ids come from fixed seeds.
"""

import argparse
import json
import os
import statistics
from datetime import date
from pathlib import Path

from benchmarks.options import RESULTS, check_writable, positive, write_json
from helpers.cluster import connect
from lesson_parts.rotation import take_turns

LESSON = Path(__file__).parent.parent / "notebooks" / "19_sharded_on_ranks.ipynb"
DEFINITIONS = (
    "import horovod.tensorflow",
    "def by_owner(",
    "def pull(",
    "class OwnedRows(",
    "def make_top(",
    "def partial_tape(",
    "def plain_tape(",
    "def table_step(",
    "def make_shard(",
    "def own_batch(",
    "def steps_of_kind(",
)
KINDS_ON_RANKS = '''
def pull_own(shard, ids):
    """As `pull`, but each rank answers itself, with wrong rows: only the time counts."""
    wanted, _, place = by_owner(ids)
    own = wanted // size % shard.shape[0]
    return tf.gather(tf.gather(shard, own), place)


def in_two(first):
    """Look up two ids by `first`, then the others by `pull_own`."""

    def find(shard, ids):
        two, others = first(shard, ids[:2]), pull_own(shard, ids[2:])
        return tf.concat([two, others], axis=0)

    return find


small = make_shard(ROWS // 10)
silent = steps_of_kind(small, in_two(pull_own), plain_tape)
dense_only = steps_of_kind(small, in_two(pull_own), partial_tape)
of_two = steps_of_kind(small, in_two(pull), partial_tape)
of_all = steps_of_kind(small, pull, partial_tape)
'''
KINDS = {
    "no exchange": "silent",
    "allreduce": "dense_only",
    "alltoalls of 2 ids": "of_two",
    "alltoalls of all ids": "of_all",
}


def cells_of_ranks(lesson):
    """The sources of the `%%px` cells that define the step, without their first lines, in the order of DEFINITIONS."""
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    on_ranks = [source.partition("\n")[2] for source in sources if source.startswith("%%px")]
    return [next(source for source in on_ranks if text in source) for text in DEFINITIONS]


def milliseconds(ranks, kind):
    """Of a step of this kind, the mean of 300 steps, on the slowest rank."""
    return 1e3 * max(ranks.view[f"timed({KINDS[kind]}, 15)[1]"]) / 300


def measure(cycle, ranks, rows):
    """{kind: three times in ms} on new ranks."""
    env = {"TF_USE_LEGACY_KERAS": "1", "HOROVOD_CYCLE_TIME": str(cycle)}
    with connect(ranks, cluster=False, env=env) as found:
        found.view.push({"ROWS": 10 * rows, "DIM": 128, "BATCH": 1024})
        for cell in cells_of_ranks(LESSON):
            found.view.execute(cell)
        found.view.execute(KINDS_ON_RANKS)
        return take_turns({kind: lambda kind=kind: milliseconds(found, kind) for kind in KINDS}, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=float, nargs="+", default=[1, 0.1], help="ms")
    parser.add_argument("--ranks", type=positive, default=2)
    parser.add_argument("--rows", type=positive, default=500_000)
    parser.add_argument("--turns", type=positive, default=2, help="how often new ranks are started for each cycle time")
    parser.add_argument("--json", type=Path, default=RESULTS / "cycle_time.json")
    options = parser.parse_args()
    check_writable(options.json)
    found = {cycle: {kind: [] for kind in KINDS} for cycle in options.cycles}
    for _ in range(options.turns):
        for cycle in options.cycles:
            for kind, times in measure(cycle, options.ranks, options.rows).items():
                found[cycle][kind] += times
    settings = {"date": str(date.today()), "cores": os.cpu_count(), "ranks": options.ranks, "rows": options.rows}
    rows = []
    for cycle, kinds in found.items():
        rows += [{"cycle_ms": cycle, "kind": kind, "ms": times} for kind, times in kinds.items()]
    for row in rows:
        middle, least, most = statistics.median(row["ms"]), min(row["ms"]), max(row["ms"])
        print(f"cycle {row['cycle_ms']} ms, {row['kind']:22}{middle:6.2f} ms a step ({least:.2f} to {most:.2f})")
    write_json(options.json, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
