"""Where engine processes come from and how they end: used by `helpers.cluster.ranks`."""

import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import ipyparallel as ipp
import psutil
from ipyparallel.error import RemoteError
from IPython.paths import locate_profile
from traitlets.config import Config

from helpers.cluster import on_engine
from helpers.cluster.processes import available
from helpers.cluster.reaper import kill, start_child, tail

ANSWER_SECONDS = 5  # how long a running ipcluster may take to answer, and each of its engines
IMPORT_SECONDS = 120  # how long its engines may take to import TensorFlow and Horovod
# An engine is admitted at the second beat: by default after 3 to 6 s. It is given up when it has not answered for 30 s,
# as by default, and ends itself when it has heard nothing for 35 s (175 by default).
HEARTBEAT = ["--HeartMonitor.period=200", "--HeartMonitor.max_heartmonitor_misses=150"]
RANK_BYTES = 300e6  # what a rank holds when it has imported TensorFlow and done nothing
MPI_ENV = {  # Open MPI 4 and 5: as root, more ranks than cores, and shared memory (its TCP listens on every interface)
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^tcp,openib,ofi,uct,usnic",
}
# where Open MPI keeps its shared memory and its session: engines that are killed do not remove it
MPI_FOLDERS = ["OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory", "PRTE_MCA_prte_tmpdir_base"]


class RankFailure(RuntimeError):
    """A rank died or does not answer. Names the rank and ends with the last lines of its log."""


class Engines:
    """A client and its engines in rank order. `undo.close()` disconnects, and ends what we started.

    client: ipyparallel Client. found: one dict per engine (id, pid, host, log, mpi_rank, gloo, mpi).
    controller: "gloo" or "mpi".
    threads: what each may use if all engines of the cluster, also those that are not taken, share the cores.
    undo: an ExitStack, emptied into that of the object. cluster: the ipyparallel Cluster if we started it.
    """

    def __init__(self, client, everyone, n, controller, undo, cluster=None):
        self.client, self.found, self.cluster = client, everyone[:n], cluster
        self.controller = choose_controller(controller, everyone)
        hosts = [engine["host"] for engine in everyone]
        self.threads = max(1, min(e["cores"] // hosts.count(e["host"]) for e in everyone))
        # a psutil.Process stays the process that it was when its id is given to another one
        self._processes = {e["id"]: psutil.Process(e["pid"]) for e in self.found} if cluster else {}
        self.undo = undo.pop_all()
        self.undo.callback(kill, self._processes.values())  # engines of mpiexec too, should it have ended before them

    def gone(self):
        """The ids of the engines that are no more: the controller says so, or (sooner) their process has ended."""
        missing = {engine["id"] for engine in self.found} - set(self.client.ids)
        return missing | {i for i, process in self._processes.items() if not process.is_running()}

    def ending(self, engine):
        """How an engine's process ended, as ", killed by SIGKILL"; "" where its launcher does not know."""
        for launcher in _launchers(self.cluster) if self.cluster else []:
            if launcher.pid == engine["pid"] and not launcher.process.is_running():
                # ipyparallel's own thread waits for the process too, only one of two waiters is told the exit code,
                # and the public join() is a coroutine, which cannot be awaited here
                launcher._wait_thread.join(2)
                code = launcher.process.wait(0)
                return f", killed by {signal.Signals(-code).name}" if (code or 0) < 0 else f", exit code {code}"
        return ""


def attach(n, controller):
    """The first n engines of the running `ipcluster start`, or None (printing why) if they will not do."""
    try:
        client = ipp.Client(f"{locate_profile()}/security/ipcontroller-client.json", timeout=ANSWER_SECONDS)
    except (TimeoutError, OSError):
        return None  # there is no file, or it was left behind by a cluster that is gone
    with contextlib.ExitStack() as undo:
        undo.callback(client.close, linger=0)
        try:
            if len(client.ids) < n:
                raise ValueError(f"it has {len(client.ids)} engine(s), {n} are needed")
            client[:].apply_async(os.getpid).get(ANSWER_SECONDS * (1 + len(client.ids)))
            return Engines(client, probe(client, IMPORT_SECONDS), n, controller, undo)
        except TimeoutError:
            why = "it does not answer (busy, or stuck in a collective)"
        except (RemoteError, ValueError) as error:
            why = str(error).splitlines()[-1].strip()
    print(f"the running ipcluster is not used, {why}: starting engines of our own")
    return None


def start(n, controller, env, timeout):
    """A new cluster of n engines, under a cluster id of its own.

    Raises ValueError if there is no memory for them, RankFailure if they are not up in time.
    """
    need, free = n * RANK_BYTES / 1e9, available() / 1e9
    if need > free:
        raise ValueError(f"n={n}: {n} ranks need at least {need:.1f} GB of memory, and {free:.1f} GB are free")
    here = sys.modules.get("horovod.tensorflow")  # where the kernel has it, it saves a first start in vain
    if controller is None and here and not here.gloo_built():
        controller = "mpi"
    cluster = _cluster(n, controller)
    try:
        with contextlib.ExitStack() as undo:
            client = _launch(cluster, env, timeout, undo)
            found = probe(client, timeout)
            if controller or found[0]["gloo"]:
                return Engines(client, found, n, controller, undo, cluster)
    except (TimeoutError, psutil.NoSuchProcess) as error:
        raise RankFailure(f"{n} engines did not start: {error}") from None
    return start(n, "mpi", env, timeout)


def probe(client, timeout):
    """What each engine says of itself, in rank order: by host, then by MPI rank or engine id."""
    ids = client.ids
    try:
        answers = client.direct_view(ids).apply_async(on_engine.describe).get(timeout=timeout)
    except TimeoutError:
        raise TimeoutError(f"they have not imported Horovod within {timeout} s") from None
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


def _cluster(n, controller):
    """An ipyparallel Cluster that is not started yet. Raises ValueError if it wants an mpiexec and there is none."""
    # the mpiexec of the wheel, also where .venv/bin is not on the PATH
    mpiexec = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if controller == "mpi" and not mpiexec:
        raise ValueError('controller="mpi": there is no mpiexec on the PATH')
    return ipp.Cluster(
        n=n,
        engines="mpi" if controller == "mpi" else "local",
        cluster_id=f"ranks-{os.getpid()}-{time.monotonic_ns()}",
        controller_args=HEARTBEAT,
        delay=0,
        log_level=logging.CRITICAL,
        config=Config({"MPILauncher": {"mpi_cmd": [mpiexec]}} if mpiexec else {}),
    )


def _launch(cluster, env, timeout, undo):
    """Start its processes and wait for the engines; returns a client. undo: given what ends each thing started."""
    folder = tempfile.mkdtemp(prefix="ranks-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    reaper = start_child("reaper", folder)
    undo.callback(reaper.communicate)
    undo.callback(_stop_cluster, cluster)
    cluster.start_controller_sync()
    cluster.start_engines_sync(environment={**MPI_ENV, **dict.fromkeys(MPI_FOLDERS, folder), **env})
    for launcher in [cluster.controller, *_launchers(cluster)]:
        print(launcher.pid, file=reaper.stdin, flush=True)
    client = cluster.connect_client_sync(timeout=timeout)
    undo.callback(client.close, linger=0)
    _wait_for_engines(cluster, client, timeout)
    return client


def _stop_cluster(cluster):
    """Kill the engines at once (they hold nothing to save, and may be stuck in a collective), then the controller."""
    kill(launcher.process for launcher in _launchers(cluster) if launcher.process)
    cluster.stop_cluster_sync()
    Path(cluster.profile_dir, "log", f"engines{cluster.cluster_id}.json").unlink(missing_ok=True)


def _wait_for_engines(cluster, client, timeout):
    """As Client.wait_for_engines, which does not notice an engine that ends at once."""
    deadline = time.monotonic() + timeout
    while len(client.ids) < cluster.n:
        ended = not all(launcher.process.is_running() for launcher in _launchers(cluster))
        if ended or time.monotonic() > deadline:
            why = "one ended at once" if ended else f"{len(client.ids)} were there after {timeout} s"
            said = "\n".join(tail(launcher.output_file) for launcher in _launchers(cluster))
            raise TimeoutError(f"{why}. The last lines of their logs:\n{said}")
        time.sleep(0.05)


def _launchers(cluster):
    """What launched each engine, or all of them (mpiexec); nothing before the start."""
    started = cluster.engine_set
    return list(getattr(started, "launchers", {0: started}).values()) if started else []
