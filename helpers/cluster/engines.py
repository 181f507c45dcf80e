"""Where engines come from: ipyparallel's own `Cluster` started here, or a cluster that somebody else started."""

import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import ipyparallel as ipp
import psutil
from IPython.paths import locate_profile
from traitlets.config import Config

from helpers.cluster import environment, on_engine
from helpers.cluster.logs import last_lines, tail
from helpers.cluster.processes import Family, ended

ANSWER_SECONDS = 5  # how long a cluster that runs already, and its engines, may take to answer
ENGINE = "helpers.cluster.engine_process"  # what an engine of our own runs
GB_OF_A_RANK = 0.3  # with TensorFlow imported and some steps done
# An engine is admitted at its second heartbeat, by default after 3 to 6 s. It is given up when it has not answered for
# 30 s, as by default. Threads pass messages on, in place of seven processes.
CONTROLLER = [
    "--HeartMonitor.period=200",
    "--HeartMonitor.max_heartmonitor_misses=150",
    "--IPController.use_threads=True",
]
_controllers = ["gloo", "mpi"]  # tried in turn; "gloo" goes once engines have said that their Horovod has none
CGROUP = Path("/sys/fs/cgroup")  # of a container, with its limit of memory


class RankFailure(RuntimeError):
    """A rank died or does not answer. Names the rank and ends with the last lines of its log.

    Attributes
    ----------
    results : dict
        Rank to what the call returned there, of the ranks that live and had answered.
    """

    results = {}


class NoGloo(ValueError):
    """The engines' Horovod was built without Gloo."""


class Engines(contextlib.AbstractContextManager):
    """Engines in rank order, and the client that talks to them.

    Parameters
    ----------
    client : ipyparallel.Client
        Connected to their controller.
    found : list of EngineInfo
        What each engine says of itself, in rank order; see `probe`.
    controller : str or None
        "gloo", "mpi", or None to choose.
    undo : contextlib.ExitStack
        What `close` undoes; it is emptied into that of this object.
    launchers : list, optional
        Those of ipyparallel that started the engines here: one for each, or that of mpiexec for all.

    Attributes
    ----------
    ours : bool
        Whether the engines were started here.
    threads : int
        What each engine may use.

    Raises
    ------
    ValueError
        If these engines cannot have the controller.
    """

    def __init__(self, client, found, controller, undo, launchers=()):
        self.client = client
        self.found = found
        self.controller = choose_controller(controller, found)
        self.threads = environment.threads_of_ranks(found)
        self.ours = bool(launchers)
        self._launchers = {launcher.pid: launcher for launcher in launchers}
        self._processes = {engine.id: process for engine in found if (process := local_process(engine))}
        self._undo = undo.pop_all()

    def gone(self):
        """The ids of the engines that are no more: the controller says so, or (sooner) their process has ended."""
        missing = {engine.id for engine in self.found} - set(self.client.ids)
        return missing | {i for i, process in self._processes.items() if ended(process)}

    def interrupt(self):
        """Send SIGINT to each engine."""
        far = [engine.id for engine in self.found if engine.id not in self._processes]
        if far:
            self.client.send_signal(signal.SIGINT, targets=far, block=False)
        for process in self._processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)

    def send_signal(self, engine, number):
        """Send a signal to an engine; whether it got it: it must be on this host, and alive."""
        with contextlib.suppress(KeyError, psutil.NoSuchProcess):
            self._processes[engine.id].send_signal(number)
            return True
        return False

    def ending(self, engine):
        """How an engine's process ended, as ", killed by SIGKILL"; "" where nobody here knows."""
        launcher = self._launchers.get(engine.pid)
        if launcher is None or engine.id not in self.gone():
            return ""
        try:
            code = launcher.process.wait(2)
        except psutil.TimeoutExpired:  # given up by the controller, and still there
            return ""
        if code is None:
            return ""
        return f", killed by {signal.Signals(-code).name}" if code < 0 else f", exit code {code}"

    def log_of(self, engine, lines=10):
        """The last lines of an engine's log; of engines that mpiexec started, of the one log that they share."""
        launchers = list(self._launchers.values())
        by_mpiexec = launchers[0] if len(launchers) == 1 else None
        launcher = self._launchers.get(engine.pid, by_mpiexec)
        if launcher is None:
            return tail(engine.log, lines)
        if os.path.isfile(launcher.output_file):  # `get_output` would remember what it says now
            return tail(launcher.output_file, lines)
        return last_lines(launcher.get_output(), lines)  # ipyparallel removes the file when the engine has ended

    def close(self):
        """Disconnect, and end what was started here."""
        self._undo.close()

    def __exit__(self, *exc):
        self.close()


def local_process(engine):
    """The psutil.Process of an engine that runs on this host; None if it is elsewhere."""
    if engine.host != socket.gethostname():
        return None
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(engine.pid)
        if abs(process.create_time() - engine.started) < 1:  # not that of a container with the same name
            return process
    return None


def probe(client, ids, timeout):
    """What these engines say of themselves, in rank order: by host, then by MPI rank or engine id.

    Parameters
    ----------
    client : ipyparallel.Client
        Knows the engines.
    ids : list of int
        Of the engines. No other engine is touched.
    timeout : float
        Seconds in which they must have imported TensorFlow and Horovod.

    Returns
    -------
    list of EngineInfo

    Raises
    ------
    TimeoutError
        If they are late.
    """
    try:
        answers = client.direct_view(ids).apply_async(on_engine.describe).get(timeout=timeout)
    except TimeoutError:
        raise TimeoutError(f"they have not imported Horovod within {timeout} s") from None
    found = [replace(answer, id=engine_id) for engine_id, answer in zip(ids, answers, strict=True)]
    hosts = list(dict.fromkeys(engine.host for engine in found))
    return sorted(found, key=lambda e: (hosts.index(e.host), e.mpi_rank or 0, e.id))


def choose_controller(wanted, found):
    """The controller of these engines, "gloo" or "mpi". ValueError if they cannot have the wanted one."""
    by_mpiexec = all(engine.mpi_rank is not None and engine.mpi for engine in found)
    chosen = wanted or ("mpi" if by_mpiexec else "gloo")
    if chosen == "mpi" and not found[0].mpi:
        raise ValueError("this Horovod was built without MPI: use Gloo")
    if chosen == "mpi" and not by_mpiexec:
        raise ValueError("these engines were not started by mpiexec: use ipcluster start --engines=mpi")
    if chosen == "gloo" and not found[0].gloo:
        raise NoGloo("this Horovod was built without Gloo: use MPI engines (ipcluster start --engines=mpi)")
    return chosen


# ---- Engines of a cluster that somebody else started


def attach(cluster, n, controller, env, timeout):
    """The first n engines of a cluster that runs already.

    Parameters
    ----------
    cluster : ipyparallel.Client, ipyparallel.Cluster, str or Path
        A connected client, a running cluster, the name of a profile, or a connection file.
    n : int
        How many engines. The others are not touched.
    controller : str or None
        "gloo", "mpi", or None to choose.
    env : dict
        The environment that each rank is to have.
    timeout : float
        Seconds in which the engines must have imported TensorFlow and Horovod.

    Returns
    -------
    Engines
        They are never stopped.

    Raises
    ------
    ValueError
        One sentence: no such profile or file, nobody answers, too few engines, one is busy or does not answer, or they
        run an MPI Horovod that cannot be changed.
    """
    with contextlib.ExitStack() as undo:
        client = cluster if isinstance(cluster, ipp.Client) else _connect(cluster, undo)
        ids = client.ids[:n]
        if len(ids) < n:
            raise ValueError(f"the cluster has {len(ids)} engine(s), {n} are needed")
        _check_idle(client, ids)
        try:
            found = probe(client, ids, timeout)
        except TimeoutError as error:
            raise ValueError(f"its engines are of no use: {error}") from None
        except ipp.error.RemoteError as error:
            raise ValueError(f"its engines are of no use: {_first_line(error)}") from None
        if any(engine.is_rank for engine in found):
            print("these engines were ranks of somebody who has not closed them: they are taken over")
        if choose_controller(controller, found) == "mpi":
            _check_mpi(found, env)
        return Engines(client, found, controller, undo)


def connection_file(cluster):
    """The connection file of a profile, or the file itself. ValueError, one sentence, if there is none.

    Parameters
    ----------
    cluster : str or Path
        The name of a profile, or the path of a connection file.
    """
    name = str(cluster)
    if name.endswith(".json") or os.sep in name:
        file = Path(name)
    else:
        try:
            file = Path(locate_profile(name), "security", "ipcontroller-client.json")
        except OSError:
            raise ValueError(
                f"there is no IPython profile {name!r}: `ipcluster start --profile={name}` makes it"
            ) from None
    if not file.is_file():
        raise ValueError(f"no cluster runs there: there is no connection file {file}")
    return file


def _connect(cluster, undo):
    """A new client of a cluster, which `undo` closes."""
    if isinstance(cluster, ipp.Cluster):
        if not cluster.controller or not cluster.controller.running:
            raise ValueError("this ipyparallel Cluster has no controller that runs: start it first")
        client = cluster.connect_client_sync()
    else:
        client = _client_of(connection_file(cluster))
    undo.callback(client.close, linger=0)
    return client


def _client_of(file):
    try:
        return ipp.Client(str(file), timeout=ANSWER_SECONDS)
    except (OSError, ValueError, KeyError, TypeError):  # TimeoutError is an OSError; the others: the file's content
        raise ValueError(
            f"{file} leads to no cluster: it was left behind by one that is gone or is out of reach, or it is empty, "
            "half written or no connection file of an ipcontroller"
        ) from None


def _first_line(error):
    """What one of the engines said, as "TypeError: ..."."""
    if isinstance(error, ipp.error.CompositeError):
        name, message = error.elist[0][:2]
        return f"{name}: {message}"
    return f"{error.ename}: {error.evalue}"


def _check_idle(client, ids):
    """ValueError, one sentence, for engines that are busy or do not answer."""
    call = client.direct_view(ids).apply_async(os.getpid)
    call.wait(ANSWER_SECONDS)
    silent = [i for i, message in zip(ids, call.msg_ids) if message in client.outstanding]
    if not silent:
        return
    state = _state(client, silent[0])
    if state is None:
        raise ValueError("the cluster's controller does not answer: it has ended, or its host is out of reach")
    if state["queue"] > 1 or state["tasks"]:  # one in the queue is our own question
        raise ValueError(f"engine {silent[0]} of the cluster is busy: wait for it, or interrupt it")
    raise ValueError(f"engine {silent[0]} of the cluster does not answer: it has died, or its host is out of reach")


def _state(client, engine_id):
    """How many calls wait for an engine, as its controller counts them: a dict; None if that does not answer."""
    answers = []

    def ask():  # in a thread: ipyparallel would wait for ever
        answers.append(client.queue_status([engine_id]))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_SECONDS)
    return answers[0][engine_id] if answers else None


def _check_mpi(found, env):
    """ValueError, one sentence, if these engines run a Horovod over MPI, which starts once, that is not as wanted."""
    sizes = [engine.size for engine in found]
    running = next((size for size in sizes if size is not None), None)
    if running is None:
        return
    if set(sizes) != {len(found)}:
        raise ValueError(
            f"these MPI engines already run Horovod with {running} ranks, and MPI can be initialised only once "
            f"in a process: call connect({running}) or restart the ipcluster"
        )
    known = found[0].settings or environment.DEFAULT_ENV  # nothing is known if somebody called hvd.init() by hand
    wanted = on_engine.horovod_settings(env)
    names = sorted(wanted.keys() | known.keys())
    changed = [name for name in names if wanted.get(name) != known.get(name)]
    if changed:
        raise ValueError(
            f"these MPI engines run Horovod already, which read {changed[0]} when it started: restart the ipcluster "
            "to change it"
        )


# ---- Engines of our own


def start(n, controller, env, timeout):
    """A cluster of n engines with a profile of its own.

    Parameters
    ----------
    n : int
        How many engines.
    controller : str or None
        "gloo", "mpi", or None: Gloo, or MPI where this Horovod has no Gloo.
    env : dict
        Added to the environment of the engines.
    timeout : float
        Seconds that they may take to start.

    Returns
    -------
    Engines
        They end when it is closed, or when this process ends, however it ends.

    Raises
    ------
    ValueError
        If there is no memory for them, or no mpiexec.
    RankFailure
        If they are not up in time.
    """
    need = GB_OF_A_RANK * n
    free = available() / 1e9
    if need > free:
        raise ValueError(f"n={n}: {n} ranks need at least {need:.1f} GB of memory, and {free:.1f} GB are free")
    for chosen in [controller] if controller else [*_controllers]:
        try:
            return _start(n, chosen, env, timeout)
        except NoGloo:
            if controller:
                raise
            _controllers.remove("gloo")
        except TimeoutError as error:
            raise RankFailure(f"{n} engines did not start: {error}") from None
        except ipp.error.RemoteError as error:
            raise RankFailure(f"{n} engines did not start: {_first_line(error)}") from None


def _start(n, controller, env, timeout):
    """See `start`. NoGloo if these engines have none."""
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as undo:
        family = undo.enter_context(Family("ranks", "/dev/shm" if os.path.isdir("/dev/shm") else None))
        cluster = _cluster(n, controller, environment.of_engines(env, controller, family.folder), family.folder)
        cluster.start_controller_sync()
        family.adopt(cluster.controller.pid)
        cluster.start_engines_sync()
        launched = cluster.engine_set
        launchers = [launched] if controller == "mpi" else list(launched.launchers.values())
        for launcher in launchers:
            family.adopt(launcher.pid)
        client = cluster.connect_client_sync()
        undo.callback(client.close, linger=0)
        _wait_for_engines(client, n, [cluster.controller, *launchers], deadline)
        found = probe(client, client.ids[:n], timeout)
        for engine in found:
            family.adopt(engine.pid)  # those of mpiexec too, should it end before them
        return Engines(client, found, controller, undo, launchers)


def _cluster(n, controller, env, folder):
    """An ipyparallel Cluster, not yet started, that is as quick as it can be and prints nothing."""
    config = Config()
    config.BaseLauncher.environment = env
    config.EngineLauncher.engine_cmd = [sys.executable, "-m", ENGINE]
    config.EngineLauncher.engine_args = ["--IPEngine.enable_nanny=False"]  # `Engines` passes signals on
    config.LocalEngineSetLauncher.delay = 0.0
    if controller == "mpi":
        config.MPILauncher.mpi_cmd = [_mpiexec()]
    return ipp.Cluster(
        n=n,
        engines="mpi" if controller == "mpi" else "local",
        profile_dir=str(folder),
        cluster_id="",
        cluster_file="",
        controller_args=CONTROLLER,
        delay=0.0,
        send_engines_connection_env=False,  # the engines import TensorFlow while the controller starts
        shutdown_atexit=False,  # the family ends with us
        load_profile=False,
        log_level=logging.ERROR,
        config=config,
    )


def _wait_for_engines(client, n, launchers, deadline):
    """Wait until the client sees n engines. TimeoutError with the end of the logs when they are late or one ended."""
    while len(client.ids) < n:
        over = [launcher for launcher in launchers if ended(launcher.process)]
        if over or time.monotonic() > deadline:
            why = "one process ended at once" if over else f"{len(client.ids)} were there in time"
            logs = [last_lines(launcher.get_output()) for launcher in over or launchers]
            raise TimeoutError("\n".join([f"{why}. The last lines of the logs:", *logs]))
        time.sleep(0.05)


def _mpiexec():
    """That of the wheel, also where .venv/bin is not on the PATH; or the system's. ValueError if there is none."""
    found = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if not found:
        raise ValueError('controller="mpi": there is no mpiexec on the PATH')
    return found


def available():
    """How much memory new processes can have.

    Returns
    -------
    int
        Bytes: what the machine has left, or less if a container's limit comes first. Files that the container has read
        and not lately used (inactive_file) count as free: the kernel drops them first.
    """
    left = psutil.virtual_memory().available
    limit = CGROUP / "memory.max"
    if not limit.exists():
        return left
    most = limit.read_text().strip()
    if most == "max":
        return left
    statistics = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    used = int((CGROUP / "memory.current").read_text()) - int(statistics["inactive_file"])
    return min(left, int(most) - used)
