"""Where engine processes come from and how they end: used by `helpers.cluster.ranks`."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ipyparallel as ipp
import psutil
from ipyparallel.controller.app import IPController
from ipyparallel.engine.app import IPEngine
from ipyparallel.error import RemoteError
from IPython.paths import locate_profile

from helpers.cluster import on_engine
from helpers.cluster.forks import forker
from helpers.cluster.processes import available
from helpers.cluster.reaper import ended, kill, start_child, tail

ANSWER_SECONDS = 5  # how long a running ipcluster may take to answer, and each of its engines
IMPORT_SECONDS = 120  # how long its engines may take to import TensorFlow and Horovod
# An engine is admitted at the second beat: by default after 3 to 6 s. It is given up when it has not answered for 30 s,
# as by default, and ends itself when it has heard nothing for 35 s (175 by default). Threads pass messages on, in place
# of seven processes.
CONTROLLER = ["--HeartMonitor.period=200", "--HeartMonitor.max_heartmonitor_misses=150"]
CONTROLLER += ["--IPController.use_threads=True"]
PORT_TAKEN = "Address already in use"  # what a controller's log says of it; most of them go on, of no use
NO_NANNY = ["--IPEngine.enable_nanny=False"]  # the nanny of an engine passes signals on: here `Engines.interrupt` does
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
    undo: an ExitStack, emptied into that of the object. exit_code: a function of a process id, if we started them.
    """

    def __init__(self, client, everyone, n, controller, undo, exit_code=None):
        self.client, self.found, self.ours, self._exit_code = client, everyone[:n], bool(exit_code), exit_code
        self.controller = choose_controller(controller, everyone)
        hosts = [engine["host"] for engine in everyone]
        self.threads = max(1, min(e["cores"] // hosts.count(e["host"]) for e in everyone))
        # a psutil.Process stays the process that it was when its id is given to another one
        self._processes = {e["id"]: psutil.Process(e["pid"]) for e in self.found} if self.ours else {}
        self.undo = undo.pop_all()
        self.undo.callback(kill, self._processes.values())  # engines of mpiexec too, should it have ended before them

    def gone(self):
        """The ids of the engines that are no more: the controller says so, or (sooner) their process has ended."""
        missing = {engine["id"] for engine in self.found} - set(self.client.ids)
        return missing | {i for i, process in self._processes.items() if ended(process)}

    def interrupt(self):
        """Send SIGINT to each engine."""
        if not self._processes:
            self.client.send_signal(signal.SIGINT, targets=[engine["id"] for engine in self.found], block=False)
        for process in self._processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)

    def ending(self, engine):
        """How an engine's process ended, as ", killed by SIGKILL"; "" where only its mpiexec knows."""
        code = self._exit_code(engine["pid"]) if engine["id"] in self.gone() and self.ours else None
        if code is None:
            return ""
        return f", killed by {signal.Signals(-code).name}" if code < 0 else f", exit code {code}"


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


def start(n, controller, env, timeout, tries=3):
    """A new cluster of n engines, with a folder of its own.

    tries: how many controllers are started, one after the other, while each finds one of the free ports that it has
    chosen taken a moment later.
    Raises ValueError if there is no memory for them, RankFailure if they are not up in time.
    """
    need, free = 0.3 * n, available() / 1e9  # GB of an MPI rank with TensorFlow imported, or of Gloo after some steps
    if need > free:
        raise ValueError(f"n={n}: {n} ranks need at least {need:.1f} GB of memory, and {free:.1f} GB are free")
    here = sys.modules.get("horovod.tensorflow")  # where the kernel has it, it saves a first start in vain
    controller = controller or ("mpi" if here and not here.gloo_built() else None)
    try:
        with contextlib.ExitStack() as undo:
            client, exit_code = _launch(n, controller, env, timeout, undo)
            found = probe(client, timeout)
            if controller or found[0]["gloo"]:
                return Engines(client, found, n, controller, undo, exit_code)
        controller = "mpi"
    except (TimeoutError, psutil.NoSuchProcess) as error:
        if PORT_TAKEN not in str(error) or tries <= 1:
            raise RankFailure(f"{n} engines did not start: {error}") from None
    return start(n, controller, env, timeout, tries - 1)


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


def _launch(n, controller, env, timeout, undo):
    """Start a controller and n engines: a client that sees them all, and a function from process id to exit code.

    undo: given what ends each of them. Forked, an engine is there in a fraction of a second; but mpiexec starts its
    own, and on a Mac a process cannot rely on what another one has imported.
    """
    folder = tempfile.mkdtemp(prefix="ranks-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    reaper = start_child("reaper", folder)
    undo.callback(reaper.communicate)
    env = {"IPP_PROFILE_DIR": folder, **env}
    ours = forker(env) if controller != "mpi" and sys.platform != "darwin" else None
    programs = [("ipcontroller", [], CONTROLLER)]
    if controller == "mpi":
        env = {**MPI_ENV, **dict.fromkeys(MPI_FOLDERS, folder), **env}
        programs.append(("ipengine", [_mpiexec(), "-n", str(n)], NO_NANNY))
    else:
        programs += [("ipengine", [], NO_NANNY)] * n
    started = {}
    for number, (name, launcher, options) in enumerate(programs):
        log = Path(folder, f"{name}-{number}.log")
        if ours:
            process = ours.fork(be, name, options, env=env, log=log, timeout=timeout)
        else:
            command = [*launcher, sys.executable, "-m", f"ipyparallel.{name.removeprefix('ip')}", *options]
            with open(log, "w") as output:
                streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
                process = psutil.Popen(command, env={**os.environ, **env}, start_new_session=True, **streams)
        started[process.pid] = process
        undo.callback(kill, [process])
        print(process.pid, file=reaper.stdin, flush=True)
    client = _wait_for_engines(n, folder, started.values(), time.monotonic() + timeout, undo)
    return client, ours.exit_code if ours else lambda pid: started[pid].poll() if pid in started else None


def _mpiexec():
    """That of the wheel, also where .venv/bin is not on the PATH; or the system's. ValueError if there is none."""
    found = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if not found:
        raise ValueError('controller="mpi": there is no mpiexec on the PATH')
    return found


def _wait_for_engines(n, folder, processes, deadline, undo):
    """A client that sees n engines. TimeoutError, with the end of their logs, when they are late or one has ended.

    A new client each second: one that connects in the moment in which an engine registers never hears of that engine.
    """
    client, renew, file = None, 0, Path(folder, "security", "ipcontroller-client.json")
    while True:
        taken = any(PORT_TAKEN in log.read_text(errors="replace") for log in Path(folder).glob("ipcontroller-*.log"))
        early = PORT_TAKEN if taken else "one ended at once" if any(map(ended, processes)) else ""
        if client and len(client.ids) >= n and not early:
            return client
        if early or time.monotonic() > deadline:
            why = early or f"{len(client.ids) if client else 0} were there in time"
            said = map(tail, sorted(Path(folder).glob("ip*.log")))
            raise TimeoutError("\n".join([f"{why}. The last lines of their logs:", *said]))
        if time.monotonic() > renew:
            with contextlib.suppress(OSError, ValueError):  # the file is not there yet, or half written
                new = ipp.Client(str(file), timeout=ANSWER_SECONDS)
                undo.callback(new.close, linger=0)
                if client is not None:  # it is false while it knows of no engine
                    client.close(linger=0)
                client, renew = new, time.monotonic() + 1
        time.sleep(0.05)


def be(name, options):
    """Be the "ipcontroller", or an "ipengine", of the cluster that the environment names."""
    {"ipcontroller": IPController, "ipengine": IPEngine}[name].launch_instance(argv=options)
