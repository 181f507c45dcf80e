"""Where engine processes come from and how they end: used by `helpers.cluster.ranks`."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ipyparallel as ipp
import psutil
from ipyparallel.util import _default_profile_dir

from helpers.cluster import on_engine

ANSWER_SECONDS = 5  # how long a running ipcluster may take to answer
MPI_ENV = {  # Open MPI as root, with more ranks than cores, and by shared memory: its TCP listens on every interface
    "OMPI_MCA_btl": "self,vader",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
REAPER = """
import psutil, sys
sys.stdin.read()
for pid in map(int, sys.argv[1:]):
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        continue
    for process in family:
        process.kill()
"""


class RankFailure(RuntimeError):
    """A rank died or does not answer. Names the rank and ends with the last lines of its log."""


class Engines:
    """A client and its engines in rank order, with what is needed to stop those that we started.

    client: ipyparallel Client. found: one dict per engine (id, pid, host, log, mpi_rank, gloo, mpi).
    threads: what each may use if all engines of the cluster, also those that are not taken, share the cores.
    cluster: the ipyparallel Cluster if we started it, else None.
    """

    def __init__(self, client, everyone, n, cluster=None, reaper=None):
        self.client, self.found, self.cluster, self._reaper = client, everyone[:n], cluster, reaper
        hosts = [engine["host"] for engine in everyone]
        self.threads = max(1, min(e["cores"] // hosts.count(e["host"]) for e in everyone))

    def stop(self):
        """Stop what we started; only disconnect from what we did not."""
        self.client.close(linger=0)
        if self.cluster:
            stop_cluster(self.cluster, [engine["pid"] for engine in self.found])
            self._reaper.communicate()
        self.cluster = None

    def gone(self):
        """The ids of the engines that are no more: the controller says so, or (sooner) their process has ended."""
        alive = set(self.client.ids)
        ended = {e["id"] for e in self.found if self.cluster and not psutil.pid_exists(e["pid"])}
        return {engine["id"] for engine in self.found} - alive | ended

    def ending(self, engine):
        """How an engine's process ended, as ", killed by SIGKILL"; "" where its launcher does not know."""
        for launcher in _launchers(self.cluster) if self.cluster else []:
            if launcher.pid == engine["pid"] and not _runs(launcher):
                # ipyparallel's own thread waits for the process too: only one of two waiters is told the exit code
                launcher._wait_thread.join(2)
                code = launcher.process.wait(0)
                return f", killed by {signal.Signals(-code).name}" if (code or 0) < 0 else f", exit code {code}"
        return ""


def attach(n, controller):
    """The first n engines of the running `ipcluster start`, or None (printing why) if they will not do."""
    connection_file = Path(_default_profile_dir()) / "security" / "ipcontroller-client.json"
    if not connection_file.exists():
        return None
    try:
        client = ipp.Client(str(connection_file), timeout=ANSWER_SECONDS)
    except (TimeoutError, OSError):
        return None  # a file left behind by a cluster that is gone
    why = f"the running ipcluster has {len(client.ids)} engine(s), {n} are needed"
    if len(client.ids) >= n:
        try:
            found = probe(client, ANSWER_SECONDS + len(client.ids) * 10)
            choose_controller(controller, found)
            return Engines(client, found, n)
        except TimeoutError:
            why = "the running ipcluster does not answer (busy, or stuck in a collective)"
        except ValueError as error:
            why = str(error)
    client.close(linger=0)
    print(f"{why}: starting engines of our own")
    return None


def start(n, controller, env, timeout):
    """A new cluster of n engines, under a cluster id of its own. Raises RankFailure if it is not up in time."""
    if controller == "mpi":
        env = {**MPI_ENV, **env}
    cluster = ipp.Cluster(
        n=n,
        engines="mpi" if controller == "mpi" else "local",
        cluster_id=f"ranks-{os.getpid()}-{time.monotonic_ns()}",
        delay=0,
        log_level=logging.CRITICAL,
    )
    try:
        cluster.start_controller_sync()
        cluster.start_engines_sync(environment=env)
        reaper = _reap_with_kernel(cluster)
        client = cluster.connect_client_sync(timeout=timeout)
        _wait_for_engines(cluster, client, timeout)
        group = Engines(client, probe(client, timeout), n, cluster, reaper)
    except BaseException as error:
        log = cluster.engine_set.get_output() if cluster.engine_set else ""
        stop_cluster(cluster, [])
        if isinstance(error, TimeoutError):
            raise RankFailure(f"{n} engines did not start: {error}. What they said:\n{log[-2000:]}") from None
        raise
    if controller is None and not group.found[0]["gloo"]:
        group.stop()
        return start(n, "mpi", env, timeout)
    return group


def probe(client, timeout):
    """What each engine says of itself, in rank order: by host, then by MPI rank or engine id."""
    ids = client.ids
    answers = client.direct_view(ids).apply_async(on_engine.describe).get(timeout=timeout)
    found = [{**answer, "id": engine_id} for engine_id, answer in zip(ids, answers, strict=True)]
    hosts = list(dict.fromkeys(engine["host"] for engine in found))
    return sorted(found, key=lambda e: (hosts.index(e["host"]), e["mpi_rank"] or 0, e["id"]))


def choose_controller(wanted, found):
    """ "gloo" or "mpi" for these engines. Raises ValueError if they cannot have the wanted one."""
    by_mpiexec = all(engine["mpi_rank"] is not None and engine["mpi"] for engine in found)
    chosen = wanted or ("mpi" if by_mpiexec else "gloo")
    if chosen == "mpi" and not by_mpiexec:
        raise ValueError("these engines were not started by mpiexec: use ipcluster start --engines=mpi")
    if chosen == "gloo" and not found[0]["gloo"]:
        raise ValueError("this Horovod was built without Gloo: use MPI engines (ipcluster start --engines=mpi)")
    return chosen


def tail(log, lines=10):
    """The last lines of a log file."""
    if not os.path.isfile(log):
        return "(its log is not on this host)"
    return "\n".join(Path(log).read_text(errors="replace").splitlines()[-lines:])


def stop_cluster(cluster, pids):
    """Kill the engines at once (they hold nothing to save, and may be stuck in a collective), then the controller."""
    family = []
    for pid in {*pids, *_pids(cluster)[1:]}:
        if psutil.pid_exists(pid):
            process = psutil.Process(pid)
            family += [process, *process.children(recursive=True)]
    for process in family:
        if process.is_running():
            process.kill()
    psutil.wait_procs(family, timeout=10)
    cluster.stop_cluster_sync()
    Path(cluster.profile_dir, "log", f"engines{cluster.cluster_id}.json").unlink(missing_ok=True)


def _wait_for_engines(cluster, client, timeout):
    deadline = time.monotonic() + timeout
    while len(client.ids) < cluster.n:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(client.ids)} of {cluster.n} were there after {timeout} s")
        if not all(_runs(launcher) for launcher in _launchers(cluster)):
            raise TimeoutError("a process ended at once")
        time.sleep(0.05)


def _launchers(cluster):
    """What launched each engine, or all of them (mpiexec)."""
    engine_set = cluster.engine_set
    return list(engine_set.launchers.values()) if hasattr(engine_set, "launchers") else [engine_set]


def _runs(launcher):
    return launcher.process.is_running() and launcher.process.status() != psutil.STATUS_ZOMBIE


def _pids(cluster):
    """The process ids of the controller and of the engines (or of their mpiexec)."""
    return [launcher.pid for launcher in [cluster.controller, *_launchers(cluster)] if launcher]


def _reap_with_kernel(cluster):
    """A child that kills controller and engines when this process ends without closing them (its stdin closes)."""
    pids = [str(pid) for pid in _pids(cluster)]
    return subprocess.Popen([sys.executable, "-c", REAPER, *pids], stdin=subprocess.PIPE, start_new_session=True)
