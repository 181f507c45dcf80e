"""Horovod Elastic processes on this machine: started, watched and ended. What they run is the caller's.

    with start_elastic(train, text, hosts="hosts.txt") as job:
        job.wait(lambda: len(job.pids) == 2)

Horovod's own ElasticDriver follows the host list and keeps one process for each slot in it. `horovodrun` does the same
with `--host-discovery-script "cat hosts.txt"`. Here all that listens does so on 127.0.0.1, not on every interface, and
several names of this machine stand for several hosts.
"""

import contextlib
import json
import os
import pickle
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import cloudpickle

from helpers.cluster.environment import DEFAULT_ENV, keep_autograph_from_horovod, limit_threads
from helpers.cluster.lean_import import lean_import
from helpers.cluster.live_line import LiveLine
from helpers.cluster.logs import tail
from helpers.cluster.processes import Family, kill
from helpers.cluster.rendezvous import LOOPBACK

MEET = 120  # seconds that the others wait for a new process, which first imports TensorFlow, on a busy machine slowly


class ElasticFailure(RuntimeError):
    """The processes ended, or did not do in time what was waited for. Ends with the last lines of their logs."""


def start_elastic(train, *arguments, hosts, least=1, most=None, cooldown=(1, 3), timeout=60):
    """Call train(*arguments) in one process for each slot of the host list.

    Parameters
    ----------
    train : callable
        Travels with what it refers to; its arguments too.
    *arguments
        What it is called with.
    hosts : str or Path
        A file that can be edited while they run: a line `name:slots` for each host, each a name of this machine.
    least, most : int
        Ranks, at least and at most.
    cooldown : tuple of int or None
        Seconds: a host that failed comes back after 2 to 3 times the first, about twice as long after each further
        failure, never longer than the second. None: it stays out.
    timeout : float
        Seconds that Horovod waits for at least `least` slots.

    Returns
    -------
    Job
        A context manager.

    Raises
    ------
    ValueError
        One sentence, for a host list that is empty, unreadable or names a host that is not this machine.
    """
    limits = {"min_num_proc": least, "max_num_proc": most, "timeout": timeout, "cooldown_range": cooldown}
    return Job(train, arguments, Path(hosts).resolve(), sum(read_hosts(hosts).values()), limits)


def read_hosts(path):
    """The host list of a file: dict, name to slots. ValueError, one sentence, if it cannot be used."""
    hosts = {}
    line = "the file"
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


class Job(contextlib.AbstractContextManager):
    """Elastic processes, made by `start_elastic`; a context manager.

    Attributes
    ----------
    driver : psutil.Popen
        The process that follows the host list.
    folder : Path
        Where their logs are until `close`, one for each slot.
    reports : list of dict
        Every line of JSON with a "time" that a process printed, in the order of that "time". The driver's say which
        process was started ("host", "pid") and which has ended ("exit" too). `wait` keeps it up to date.
    """

    def __init__(self, train, arguments, hosts, start, limits):
        self._family = Family("elastic")
        self.folder = self._family.folder
        self.reports = []
        self._read_to = Counter()  # bytes of each log
        (self.folder / "train").write_bytes(cloudpickle.dumps((train, arguments)))
        (self.folder / "limits").write_bytes(pickle.dumps((hosts, start, limits)))
        self.driver = self._family.start(
            [sys.executable, "-m", "examples.elastic", "drive", self.folder],
            env={**DEFAULT_ENV, "CUDA_VISIBLE_DEVICES": "", "HOROVOD_GLOO_TIMEOUT_SECONDS": str(MEET)},
            log=self.folder / "driver.log",
        )

    @property
    def pids(self):
        """dict, host to id of its process, for those that have been started and not ended."""
        last = {report["host"]: report for report in self.reports if "pid" in report}
        return {host: report["pid"] for host, report in last.items() if "exit" not in report}

    def wait(self, until, timeout=60):
        """Wait for a condition. One live line shows step, size and loss.

        Parameters
        ----------
        until : callable
            Takes nothing; what is waited for is that it returns something true.
        timeout : float
            Seconds.

        Raises
        ------
        ElasticFailure
            When the processes end before, or after `timeout` seconds. Then, and on Ctrl-C, all is closed.
        """
        line = LiveLine(True)
        deadline = time.monotonic() + timeout
        over = False
        try:
            while not until():
                if over or time.monotonic() > deadline:
                    raise ElasticFailure(self._why(over, timeout))
                time.sleep(0.1)
                over = self.driver.poll() is not None
                self._read()
                line.show(self._shown())
        except BaseException:
            self.close()
            raise
        finally:
            line.close()

    def _why(self, over, timeout):
        why = "ended" if over else f"did not do within {timeout:.0f} s what was waited for"
        logs = [f"{log.stem}: {tail(log)}" for log in sorted(self.folder.glob("*.log"))]
        return f"the elastic processes {why}. Their logs:\n" + "\n".join(logs)

    def _shown(self):
        """What the live line is to show: the last report that has a loss."""
        with_loss = [report for report in self.reports if "loss" in report]
        if not with_loss:
            return None
        last = with_loss[-1]
        ranks = "1 rank" if last["size"] == 1 else f"{last['size']} ranks"
        return {"steps": None, "said": f"{ranks}, loss {last['loss']:.3f}", **last}

    def _read(self):
        """Add the whole lines that the logs have got since the last call."""
        for log in self.folder.glob("*.log"):
            with open(log, "rb") as file:
                file.seek(self._read_to[log])
                lines = file.read()
            lines = lines[: lines.rfind(b"\n") + 1]
            self._read_to[log] += len(lines)
            for line in lines.splitlines():
                with contextlib.suppress(ValueError, TypeError, KeyError):  # a process printed something else
                    report = json.loads(line)
                    float(report["time"])
                    self.reports.append(report)
        self.reports.sort(key=lambda report: float(report["time"]))

    def close(self):
        """End all processes and remove their logs. Can be called twice."""
        self._family.close()

    def __exit__(self, *exc):
        self.close()


def drive(folder):
    """Be the driver: Horovod's, with processes of ours, until they have ended."""
    from horovod.runner.elastic.driver import ElasticDriver
    from horovod.runner.elastic.rendezvous import create_rendezvous_handler
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer
    from horovod.runner.util.network import get_local_intfs

    _listen_on_loopback()
    hosts, start, limits = pickle.loads(Path(folder, "limits").read_bytes())
    discovery = SimpleNamespace(find_available_hosts_and_slots=lambda: read_hosts(hosts))
    rendezvous = RendezvousServer()
    driver = ElasticDriver(rendezvous, discovery, **limits)
    port = rendezvous.start(create_rendezvous_handler(driver))
    shared = create_run_env_vars(LOOPBACK, get_local_intfs(), port, elastic=True)

    def keep(slot, events):  # in a thread for each process
        env = {name: str(value) for name, value in {**shared, **create_slot_env_vars(slot)}.items()}
        process = family.start(
            [sys.executable, "-m", "examples.elastic", "work", folder],
            env=env,
            log=Path(folder, f"{slot.hostname}-{slot.local_rank}.log"),
        )
        _say(host=slot.hostname, pid=process.pid)
        while process.poll() is None and not any(event.is_set() for event in events):
            time.sleep(0.1)
        kill([process])
        code = process.wait()
        _say(host=slot.hostname, pid=process.pid, exit=code)
        return code, time.time()

    with Family("workers", folder) as family:  # inside the job's folder, which goes with the job
        driver.wait_for_available_slots(start)
        driver.start(start, keep)
        codes = [code for code, _ in driver.get_results().worker_results.values()]
    sys.stdout.flush()
    os._exit(not codes or any(code != 0 for code in codes))  # threads of Horovod's driver may go on


def _say(**facts):
    """Print a line of JSON, whole, though threads print."""
    print(json.dumps({**facts, "time": time.time()}) + "\n", end="", flush=True)


def work(folder):
    """Be one process of the job."""
    with lean_import():
        import horovod.tensorflow as hvd

    if not hvd.gloo_built():  # it would crash
        sys.exit("Horovod Elastic needs Gloo, and this Horovod was built without it: `make setup` builds one with both")
    _listen_on_loopback()
    keep_autograph_from_horovod()
    limit_threads(1)
    train, arguments = pickle.loads(Path(folder, "train").read_bytes())
    train(*arguments)


def _listen_on_loopback():
    """Horovod's servers ask `find_port` for a port, and it gives one on every interface."""
    from horovod.runner.common.util import network
    from horovod.runner.http import http_server

    def find_port(make):
        server = make((LOOPBACK, 0))
        return server, server.server_address[1]

    network.find_port = find_port
    http_server.find_port = find_port


if __name__ == "__main__":
    {"drive": drive, "work": work}[sys.argv[1]](sys.argv[2])
