"""A cable pulled for 5 s, and a host lost: what each launcher does: `python -m benchmarks.host_faults`, as root.

Each system trains examples/train.py's model on two hosts. While it trains, the cable of host1 is pulled and put back;
then host1 is switched off without a word. Measured: how long training stood still, and when and how the launcher ended.
Hogwild's threads share one memory, so they all run on host1.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.on_hosts import ENVIRONMENT, ssh_engines, start_server
from benchmarks.options import check_writable, write_json
from laptop_cluster import hosts

EXAMPLES = Path(__file__).parent.parent / "examples"
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lan0"]
SCRIPT = [sys.executable, EXAMPLES / "train.py", "--steps", "1000000"]
TWO = ["-np", "2", "-H", "host0:1,host1:1"]
MPIRUN = ["mpirun", *TWO, *TCP, "--prefix", sys.prefix, "--map-by", ":oversubscribe", "--bind-to", "none"]


def horovodrun(machines):
    env = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "30"}
    return [start(machines, 0, ["horovodrun", "--gloo", "--network-interfaces", "lan0", *TWO, *SCRIPT], env)]


def mpirun(machines):
    return [start(machines, 0, [*MPIRUN, *SCRIPT], ROOT)]


def mirrored(machines):
    spec, processes = {"worker": ["host0:2222", "host1:2222"]}, []
    for index in (0, 1):
        task = {"cluster": spec, "task": {"type": "worker", "index": index}}
        command = [sys.executable, EXAMPLES / "mirrored.py", "--steps", "1000000"]
        processes.append(start(machines, index, command, {"TF_CONFIG": json.dumps(task)}))
    return processes


def servers(machines):
    """Two workers and one server on host0 (lost with host1: worker 1), one chief on host0 too."""
    spec = {"chief": ["host0:2224"], "worker": ["host0:2222", "host1:2222"], "ps": ["host0:2223"]}
    for role, host in ("worker", 0), ("worker", 1), ("ps", 0):
        start_server(machines, host, spec, role, host)
    command = [sys.executable, "-m", "benchmarks.host_faults", "chief"]
    return [start(machines, 0, command, {"TF_CONFIG": json.dumps({"cluster": spec})})]


def chief():
    """Schedules steps for ever, and says when each twentieth is done."""
    sys.path.insert(0, str(EXAMPLES))
    import tensorflow as tf
    import train

    from helpers.cluster import attach_servers

    cluster = attach_servers()
    with cluster.strategy.scope():
        tables = train.make_tables(0)

    @tf.function
    def step(*batch):
        return descend(tables, batch)

    for number, batch in enumerate(train.batches(0, 1_000_000)):
        cluster.coordinator.schedule(step, args=tuple(map(tf.constant, batch)))
        if number % 20 == 0:
            cluster.coordinator.join()
            print(f"step {number}", flush=True)


def connected(machines):
    """Ranks on engines started by ssh, one on each host; the program that calls them runs on host0."""
    with ssh_engines(machines):
        env = {"IPYTHONDIR": os.environ["IPYTHONDIR"]}
    command = [sys.executable, "-m", "benchmarks.host_faults", "caller", machines.addresses[0]]
    return [start(machines, 0, command, env)]


def caller(address):
    """Lets the ranks take steps for ever, and says when each twentieth is done."""
    from helpers.cluster import connect

    with connect(2, address=address) as ranks:
        while True:
            ranks.run(advance, EXAMPLES)
            print("20 steps", flush=True)


def advance(examples):
    """On a rank: 20 steps with averaged gradients. What it trains stays with the module until the next call."""
    sys.path.insert(0, str(examples))
    import horovod.tensorflow as hvd
    import train

    if not hasattr(train, "own"):
        train.own = train.make_tables(0), train.batches(hvd.rank(), 1_000_000)
    tables, source = train.own
    for _, batch in zip(range(20), source, strict=False):
        descend(tables, batch, hvd.DistributedGradientTape)


def hogwild(machines):
    return [start(machines, 1, [sys.executable, "-m", "benchmarks.host_faults", "threads"])]


def threads():
    """Two threads change the same tables for ever, without a lock, and say when each twentieth step is done."""
    sys.path.insert(0, str(EXAMPLES))
    import tensorflow as tf
    import train

    tables = train.make_tables(0)

    @tf.function
    def step(*batch):
        return descend(tables, batch)

    def work(thread):
        for number, batch in enumerate(train.batches(thread, 1_000_000)):
            step(*map(tf.constant, batch))
            if number % 20 == 0:
                print(f"step {number} of thread {thread}", flush=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))


def descend(tables, batch, distribute=lambda tape: tape):
    """One step of examples/train.py's model; returns the loss. distribute: wraps the tape, as Horovod does."""
    import tensorflow as tf
    import train

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(train.nce_losses(tables, *batch))
    for table, gradient in zip(tables, distribute(tape).gradient(loss, tables), strict=True):
        table.scatter_sub(tf.IndexedSlices(train.LR * gradient.values, gradient.indices))
    return loss


SYSTEMS = {
    "horovodrun": horovodrun,
    "mpirun": mpirun,
    "MultiWorkerMirroredStrategy": mirrored,
    "ParameterServerStrategy": servers,
    "connect": connected,
    "Hogwild": hogwild,
}


def start(machines, host, command, env=None):
    return machines.start(
        host, command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )


class Progress:
    """Reads what a process says, in a thread: `marks` are the times at which a line with "step" came."""

    def __init__(self, process):
        self.process, self.marks, self.lines = process, [], []
        self.reader = threading.Thread(target=self._read, args=[process], daemon=True)
        self.reader.start()

    def _read(self, process):
        for line in process.stdout:
            self.lines.append(line)
            if "step" in line:
                self.marks.append(time.monotonic())

    def wait(self, n, seconds):
        """Whether n more marks come in time; no longer when the process has ended."""
        goal, deadline = len(self.marks) + n, time.monotonic() + seconds
        while len(self.marks) < goal and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.02)
        return len(self.marks) >= goal


def measure(name, cut, limit):
    """A row: seconds without a step around a cut, and how the launcher took the loss of host1."""
    with hosts(2, env=ENVIRONMENT) as machines:
        processes = SYSTEMS[name](machines)
        progress = Progress(processes[0])
        row = {"system": name, "cut": cut, "limit": limit}
        if not progress.wait(3, 120):
            return {**row, "problem": "".join(progress.lines[-20:])}
        cut_at = time.monotonic()
        machines.plug(1, up=False)
        time.sleep(cut)
        machines.plug(1, up=True)
        row["goes_on_after_cut"] = progress.wait(3, 60) and all(p.poll() is None for p in processes)
        gaps = [b - a for a, b in zip(progress.marks, progress.marks[1:], strict=False) if b > cut_at]
        row["stood_still"] = max(gaps, default=None)
        machines.plug(1, up=False)
        machines.lose(1)
        lost = time.monotonic()
        row["goes_on_after_loss"] = progress.wait(8, limit)
        row["ended_after"] = time.monotonic() - lost if processes[0].poll() is not None else None
        row["exit_code"] = processes[0].poll()
        progress.reader.join(0 if processes[0].poll() is None else 2)
        row["said"] = "".join(progress.lines[-6:])[-600:]
        return row


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_faults", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--cut", type=float, default=5.0, help="seconds without a cable (default: 5)")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds to wait for an end (default: 90)")
    parser.add_argument("--systems", nargs="+", choices=[*SYSTEMS], default=[*SYSTEMS], metavar="NAME")
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    check_writable(options.json)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    rows = []
    for name in options.systems:
        rows.append(measure(name, options.cut, options.limit))
        print(json.dumps(rows[-1]), flush=True)
    if options.json:
        write_json(options.json, {"rows": rows})


if __name__ == "__main__":
    inside = {"chief": chief, "caller": caller, "threads": threads}.get(sys.argv[1] if len(sys.argv) > 1 else None)
    inside(*sys.argv[2:]) if inside else main()
