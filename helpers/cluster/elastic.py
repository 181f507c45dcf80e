"""Horovod Elastic processes on this machine: started, watched and ended. What they run is the caller's.

    job = start_elastic(train, text, hosts="hosts.txt")
    job.wait(lambda: len(job.pids) == 2)
    job.close()

Horovod's own ElasticDriver follows the host list and keeps one process for each slot in it. `horovodrun` does the same
with `--host-discovery-script "cat hosts.txt"`. Here the processes are forked from one that has imported TensorFlow, so
that a new one is there in a second, and all that listens does so on 127.0.0.1, not on every interface.
"""

import contextlib
import json
import os
import pickle
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import cloudpickle

from helpers.cluster.engines import IMPORT_SECONDS
from helpers.cluster.forks import forker
from helpers.cluster.live_line import LiveLine
from helpers.cluster.on_engine import limit_threads
from helpers.cluster.ranks import DEFAULT_ENV
from helpers.cluster.reaper import ended, kill, start_child, tail
from helpers.cluster.rendezvous import LOOPBACK


class ElasticFailure(RuntimeError):
    """The processes ended, or did not do in time what was waited for. Ends with the last lines of their logs."""


def start_elastic(train, *arguments, hosts, least=1, most=None, cooldown=(1, 3), timeout=60):
    """Call train(*arguments) in one process for each slot of the host list; returns a Job.

    hosts: path of a file that can be edited while they run: a line `name:slots` for each host. All names must lead to
    this machine. least, most: ranks. cooldown: seconds after which a host that failed may come back, from and to; they
    double each time. timeout: seconds that Horovod waits for at least `least` slots.
    ValueError, one sentence, for a host list that is empty, unreadable or names a host that is not this machine.
    """
    start = sum(read_hosts(hosts).values())
    return Job((train, arguments), (Path(hosts).resolve(), start, least, most, timeout, cooldown))


def read_hosts(path):
    """The host list of a file: dict, name -> slots. ValueError, one sentence, if it cannot be used."""
    hosts, line = {}, "the file"
    try:
        for line in Path(path).read_text(encoding="utf-8").split():
            name, _, slots = line.partition(":")
            with socket.socket() as probe:  # only an address of this machine can be had
                probe.bind((socket.gethostbyname(name), 0))
            hosts[name] = int(slots)
        if sum(hosts.values()) < 1:
            raise ValueError("it is empty, and a line name:slots is needed for each host")
    except (OSError, ValueError) as error:
        raise ValueError(f"the host list {path}: {line!r} is no host of this machine: {error}") from None
    return hosts


class Job:
    """Elastic processes, made by `start_elastic`. folder: where their logs are until `close`, one for each slot.

    reports: every line of JSON with a "time" that a process printed, a list of dict in the order of that "time". The
    driver's say which process was started ("host", "pid") and which has ended ("exit" too). `wait` keeps it up to date.
    """

    def __init__(self, train, options):
        job = cloudpickle.dumps((options, cloudpickle.dumps(train)))
        self.folder, self.reports = Path(tempfile.mkdtemp(prefix="elastic-")), []
        (self.folder / "job").write_bytes(job)
        env = {**os.environ, **DEFAULT_ENV, "OPENBLAS_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        with open(self.folder / "driver.log", "w") as log:
            self.driver = start_child("elastic", self.folder, env=env, stderr=log)

    @property
    def pids(self):
        """dict, host -> id of its process, for those that have been started and not ended."""
        last = {report["host"]: report for report in self.reports if "pid" in report}
        return {host: report["pid"] for host, report in last.items() if "exit" not in report}

    def wait(self, until, timeout=60):
        """Wait until `until()` is true. One live line shows step, size and loss.

        ElasticFailure when the processes end before, or after `timeout` seconds. Then, and on Ctrl-C, all is closed.
        """
        line, deadline, over = LiveLine(True), time.monotonic() + timeout, False
        try:
            while not until():
                if over or time.monotonic() > deadline:
                    why = "ended" if over else f"did not do within {timeout:.0f} s what was waited for"
                    logs = [f"{log.stem}: {tail(log)}" for log in sorted(self.folder.glob("*.log"))]
                    raise ElasticFailure(f"the elastic processes {why}. Their logs:\n" + "\n".join(logs))
                time.sleep(0.1)
                over = self.driver.poll() is not None
                self._read()
                for last in [report for report in self.reports if "loss" in report][-1:]:
                    line.show({"steps": None, "said": f"{last['size']} ranks, loss {last['loss']:.3f}", **last})
        except BaseException:
            self.close()
            raise
        finally:
            line.close()

    def _read(self):
        logs, found = [log.read_text(errors="replace") for log in self.folder.glob("*.log")], []
        for line in "\n".join(logs).splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError):  # it is something else that a process printed
                report = json.loads(line)
                found.append((float(report["time"]), len(found), report))
        self.reports = [report for *_, report in sorted(found)]

    def close(self):
        """End all processes and remove their logs. Can be called twice."""
        if not self.driver.stdin.closed:
            self.driver.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)  # a driver that has ended by itself leaves it


def drive(folder):
    """Be the driver: Horovod's, with processes of ours, until they have ended or our stdin closes."""
    from horovod.runner.elastic.driver import ElasticDriver
    from horovod.runner.elastic.rendezvous import create_rendezvous_handler
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer
    from horovod.runner.util.network import get_local_intfs

    os.dup2(2, 1)
    ours = forker()
    threading.Thread(target=_end_with_kernel, args=(folder, ours), daemon=True).start()
    _listen_on_loopback()
    hosts, start, *limits, cooldown = pickle.loads(Path(folder, "job").read_bytes())[0]
    discovery = SimpleNamespace(find_available_hosts_and_slots=lambda: read_hosts(hosts))
    rendezvous = RendezvousServer()
    driver = ElasticDriver(rendezvous, discovery, *limits, cooldown_range=cooldown)
    port = rendezvous.start(create_rendezvous_handler(driver))
    shared = create_run_env_vars(LOOPBACK, get_local_intfs(), port, elastic=True)

    def keep(slot, events):  # in a thread for each process
        env = {name: str(value) for name, value in {**shared, **create_slot_env_vars(slot)}.items()}
        log = Path(folder, f"{slot.hostname}-{slot.local_rank}.log")
        process = ours.fork(_work, folder, env=env, log=log, timeout=IMPORT_SECONDS)
        said = {"host": slot.hostname, "pid": process.pid}
        print(json.dumps({**said, "time": time.time()}) + "\n", end="", flush=True)  # whole lines, though threads print
        while not ended(process) and not any(event.is_set() for event in events):
            time.sleep(0.1)
        kill([process])
        code = ours.exit_code(process.pid)
        print(json.dumps({**said, "time": time.time(), "exit": code}) + "\n", end="", flush=True)
        return code, time.time()

    driver.wait_for_available_slots(start)
    driver.start(start, keep)
    codes = [code for code, _ in driver.get_results().worker_results.values()]
    sys.exit(not codes or any(code != 0 for code in codes))  # None: nobody knows


def _end_with_kernel(folder, ours):
    sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)  # first: without its processes the driver may end before this thread
    ours.stop()
    os._exit(1)


def _work(folder):
    """Be one process of the job."""
    import horovod.tensorflow as hvd

    if not hvd.gloo_built():  # it would crash
        sys.exit("Horovod Elastic needs Gloo, and this Horovod was built without it: `make setup` builds one with both")
    _listen_on_loopback()
    limit_threads(1)
    train, arguments = pickle.loads(pickle.loads(Path(folder, "job").read_bytes())[1])
    train(*arguments)


def _listen_on_loopback():
    """Horovod's servers ask `find_port` for a port, and it gives one on every interface."""
    from horovod.runner.common.util import network
    from horovod.runner.http import http_server

    network.find_port = http_server.find_port = lambda make: (it := make((LOOPBACK, 0)), it.server_address[1])


if __name__ == "__main__":
    from helpers.cluster.elastic import drive  # under this name the processes find `_work`

    drive(sys.argv[1])
