"""ipyparallel engines as Horovod ranks.

    with connect(2) as ranks:
        ranks.run(train, data)      # train(data) on every rank; results in rank order

In a notebook `%%px` then runs a cell on every rank. The kernel itself is not a rank: it starts the engines (or
attaches to those of a running `ipcluster`), gives each its Horovod environment, as `horovodrun` would, and has
each call `hvd.init()`.
"""

import atexit
import contextlib
import functools
import math
import numbers
import tempfile
import time
from pathlib import Path

from ipyparallel.error import NoEnginesRegistered
from IPython import get_ipython

from helpers.cluster import engines, environment, on_engine, standing
from helpers.cluster.engines import RankFailure
from helpers.cluster.live_line import LiveLine
from helpers.cluster.px import register
from helpers.cluster.rendezvous import LOOPBACK, check_address, start_rendezvous

_last = None  # the Ranks that this kernel connected to last, open or closed


def connect(n=2, *, cluster=None, controller=None, address=None, env=None, timeout=120, grace=20):
    """Turn n engines into n initialised Horovod ranks.

    Ranks that are still open in this kernel are closed first.

    Parameters
    ----------
    n : int
        Number of ranks.
    cluster : ipyparallel.Client, ipyparallel.Cluster, str, Path, False or None
        Whose engines: a connected client's, a running Cluster's, those of the `ipcluster` of a profile (by its name) or
        of a connection file (by its path): the first n. None takes those of the default profile if such a cluster runs
        and its first n are idle, and starts engines otherwise. False always starts engines. Engines that are ranks of
        another notebook are taken over, with a line that says so: use a cluster in one notebook at a time.
    controller : {"gloo", "mpi"}, optional
        By default MPI where the engines were started by mpiexec, else Gloo.
    address : str, optional
        IP address of this machine that engines on other hosts can reach; by default only loopback is listened on.
    env : dict, optional
        Environment variables set on every rank before `hvd.init()`, such as {"HOROVOD_FUSION_THRESHOLD": "0"}, and gone
        after `close`. On engines that are started here those of TensorFlow too are in time.
    timeout : float
        Seconds that each stage (engines up, Horovod up) may take.
    grace : float
        Seconds that the other ranks may go on after one has died.

    Returns
    -------
    Ranks
        A context manager.

    Raises
    ------
    ValueError
        One sentence: for bad arguments, and for a cluster that was named and cannot be used.
    RankFailure
        When ranks do not come up in time. What it raises, and Ctrl-C too, leaves nothing running that it started.
    """
    global _last
    _check(n, controller, address)
    if _last:
        _last.close()
    group = _engines(n, cluster, controller, env, timeout)
    ranks = _last = Ranks(group, grace)
    try:
        ranks._initialise(address, env, timeout)
    except BaseException:
        ranks.close()
        raise
    where = "engines started here" if group.ours else "engines of the running ipcluster"
    print(f"{n} ranks ready: {ranks.controller}, {ranks.threads} thread(s) each, {where}")
    return ranks


def _check(n, controller, address):
    """Raises ValueError, one sentence, for arguments that `connect` cannot have."""
    if not isinstance(n, numbers.Integral) or n < 1:
        raise ValueError(f"n={n!r}: a whole number of ranks is needed, at least 1 rank")
    if controller not in (None, "gloo", "mpi"):
        raise ValueError(f'controller={controller!r}: choose "gloo", "mpi" or None')
    if address is not None:
        check_address(address)


def _engines(n, cluster, controller, env, timeout):
    """The engines for these arguments of `connect`."""
    named = cluster is not None
    if not named:
        try:
            cluster = engines.connection_file("default")
        except ValueError:
            cluster = False  # no cluster runs
    if cluster is not False:
        try:
            return engines.attach(cluster, n, controller, environment.of_rank(env), timeout)
        except ValueError as error:
            if named:
                raise
            print(f"the running ipcluster is not used: {error}. Starting engines of our own.")
    return engines.start(n, controller, env, timeout)


class Ranks(contextlib.AbstractContextManager):
    """n Horovod ranks on n engines; a context manager, made by `connect`.

    Attributes
    ----------
    size : int
        Number of ranks.
    view : ipyparallel.DirectView
        Its i-th target is rank i.
    controller : str
        "gloo" or "mpi".
    threads : int
        TensorFlow and BLAS threads of each rank.
    engines : list of EngineInfo
        One per rank, in rank order: its id, pid, host, log and more, see helpers/cluster/on_engine.py.
    cell : str
        What `%px` or `%%px` sent last.
    """

    cell = ""

    def __init__(self, group, grace):
        self.engines = group.found
        self.controller = group.controller
        self.threads = group.threads
        self.size = len(group.found)
        self.view = group.client.direct_view([engine.id for engine in group.found])
        self.view.block = True
        self._group = group
        self._grace = grace
        self._closed = False
        self._undo = contextlib.ExitStack()  # called in reverse order, each also when another one fails
        self._undo.callback(group.close)
        self._stacks = Path(self._undo.enter_context(tempfile.TemporaryDirectory(prefix="ranks_")))
        atexit.register(self.close)

    def run(self, fn, *args, progress=False, **kwargs):
        """Call `fn(*args, **kwargs)` on every rank.

        Parameters
        ----------
        fn : callable
            Travels with what it refers to.
        *args, **kwargs
            Its arguments, the same on every rank.
        progress : bool
            Show one live line with what rank 0 last gave to `report`.

        Returns
        -------
        list
            The results in rank order.

        Raises
        ------
        RankFailure
            When a rank dies, or has died since the last call; its `results` are those of the other ranks.
        Exception
            What fn raised.
        """
        # (a closure travels as one cloudpickle; what is given to apply_async itself arrives as read-only arrays)
        call = self.submit(lambda: self.view.apply_async(lambda: fn(*args, **kwargs)))
        return self.wait(call, progress)

    def submit(self, send):
        """Send a call to the ranks, if none of them has died.

        Parameters
        ----------
        send : callable
            Takes nothing, returns an AsyncResult of `view`.

        Returns
        -------
        ipyparallel.AsyncResult
            What `send` returned.

        Raises
        ------
        RankFailure
            When a rank has died since the last call, or the ranks are closed.
        """
        if self._closed:
            raise RankFailure("the ranks are closed: call connect() again")
        if self.dead():
            raise self._close_and_explain("died")
        try:
            return send()
        except (KeyError, IndexError, NoEnginesRegistered):  # the client has just heard of it
            if self.dead():
                raise self._close_and_explain("died") from None
            raise

    def wait(self, call, progress=True, timeout=math.inf):
        """Wait for an AsyncResult of `view`; one live line shows what rank 0 reports.

        Parameters
        ----------
        call : ipyparallel.AsyncResult
            From `submit`.
        progress : bool
            Show the live line.
        timeout : float
            Seconds after which ranks that have not answered are given up.

        Returns
        -------
        list
            The results in rank order.

        Raises
        ------
        RankFailure
            When a rank dies or does not answer.
        Exception
            What the call raised on a rank.
        """
        give_up = time.monotonic() + timeout
        line = LiveLine(progress)
        try:
            while not call.done() and time.monotonic() < give_up:
                call.wait(0.2)
                line.show(call.data[0])
                if self.dead():
                    give_up = min(give_up, time.monotonic() + self._grace)
                    if not self._awaited(call):
                        break
        except KeyboardInterrupt:
            self.interrupt(call)
            raise
        finally:
            line.close()
        if self.dead():
            answers = self._answers(call)  # as long as there is a client to ask
            failure = self._close_and_explain("died")
            failure.results = answers
            raise failure
        if not call.done():
            raise self._close_and_explain(f"did not answer within {timeout} s", sorted(self._awaited(call)))
        return call.get()

    def _awaited(self, call):
        """The ranks that live and have not answered yet."""
        due = self.view.client.outstanding
        return {rank for rank, message in enumerate(call.msg_ids) if message in due} - set(self.dead())

    def _answers(self, call):
        """{rank: what the call returned} of the ranks that live and have answered without an error."""
        silent = {*self.dead(), *self._awaited(call)}
        answers = {}
        for rank, part in enumerate(call.split()):
            if rank not in silent:
                part.wait(engines.ANSWER_SECONDS)
                if part.done() and part.successful():
                    answers[rank] = part.get()
        return answers

    def dead(self):
        """The ranks whose engine is gone: list of int."""
        gone = self._group.gone()
        return [rank for rank, engine in enumerate(self.engines) if engine.id in gone]

    def where(self):
        """At which line each rank stands, also inside a collective that never ends.

        Returns
        -------
        list of str
            In rank order, such as "line 4 of step: hvd.allreduce(x)"; "idle" for a rank that runs nothing, "dead", or
            "not known" for one on another host.
        """
        give_up = time.monotonic() + engines.ANSWER_SECONDS
        return [self._where(rank, engine, give_up) for rank, engine in enumerate(self.engines)]

    def _where(self, rank, engine, give_up):
        """See `where`; of one rank, at the latest at `give_up`."""
        if rank in self.dead():
            return "dead"
        file = self._stacks / str(engine.pid)
        before = file.stat().st_size if file.exists() else None
        if before is None or not self._group.send_signal(engine, standing.SIGNAL):  # unasked, it would end the engine
            return "not known"
        wait_until_written(file, before, give_up)
        return standing.standing(standing.last_stack(file.read_text(errors="replace")), self.cell)

    def log(self, rank, lines=10):
        """What a rank's process has written to its standard error lately, Horovod's own messages among it.

        Parameters
        ----------
        rank : int
            Whose log; ranks that mpiexec started share one.
        lines : int
            How many lines, at most.

        Returns
        -------
        str
            The last lines, or a remark where the log cannot be read from here.
        """
        return self._group.log_of(self.engines[rank], lines)

    def interrupt(self, call):
        """Say where each rank stands, interrupt them, close: after a Ctrl-C. A collective cannot be interrupted."""
        if not call.done():
            for rank, line in enumerate(self.where()):
                print(f"rank {rank} stood at {line}")
        self._group.interrupt()
        call.wait(engines.ANSWER_SECONDS)
        self.close()
        print("interrupted: these ranks are closed, connect() gives new ones")

    def close(self):
        """Shut Horovod down, and stop the engines if `connect` started them. Can be called twice."""
        atexit.unregister(self.close)
        self._closed = True
        self._undo.close()

    def __exit__(self, *exc):
        self.close()

    def _initialise(self, address, env, timeout):
        """Call hvd.init() on each engine, check size and ranks, and send %px to them."""
        members = None
        slots = [None] * self.size
        if self.controller == "gloo":
            slots = start_rendezvous(self.engines, self._address(address), self._undo)
        else:
            members = [engine.mpi_rank for engine in self.engines]
        if not self._group.ours:
            self._undo.callback(self._release)
        envs = [environment.of_rank(env, slot) for slot in slots]
        initialise = functools.partial(on_engine.initialise, members, self.threads, str(self._stacks))
        call = self.view.map_async(initialise, envs)
        found = self.wait(call, progress=False, timeout=timeout)
        if found != [(rank, self.size) for rank in range(self.size)]:
            raise RankFailure(f"Horovod reports (rank, size) {found} where ranks 0 to {self.size - 1} are expected")
        self.view.use_cloudpickle()
        if shell := get_ipython():
            register(shell, self)

    def _address(self, address):
        """Where the rendezvous listens. ValueError if engines on other hosts could not reach it."""
        several = len({engine.host for engine in self.engines}) > 1
        if several and address is None:
            what = "an IP address of this machine that they can reach (no password: trusted networks only)"
            raise ValueError(f"the engines are on several hosts: give connect(address=...) {what}")
        return address or LOOPBACK

    def _release(self):
        """Let engines that live on be ranks of others later; those stuck in a collective have limits of their own."""
        if not self.dead():
            call = self.view.apply_async(on_engine.release, self.controller == "gloo")
            call.wait(engines.ANSWER_SECONDS)

    def _close_and_explain(self, what, silent=()):
        """Close everything and return the RankFailure that says why; silent: ranks that live and have not answered."""
        ranks = silent or self.dead()
        endings = {rank: self._group.ending(self.engines[rank]) for rank in ranks}
        # a rank aborts because another one is no more: name the other one first
        first, *others = sorted(ranks, key=lambda rank: "SIGABRT" in endings[rank])
        with_it = "did not either" if silent else "ended with it"
        also = "".join(f"; rank {rank} {with_it}{endings[rank]}" for rank in others)
        engine = self.engines[first]
        said = self._group.log_of(engine)
        self.close()
        return RankFailure(
            f"rank {first} (engine {engine.id}) {what}{endings[first]}{also}. Call connect() again for new ranks.\n"
            f"The last lines of its log:\n{said}"
        )


def wait_until_written(file, before, give_up):
    """Wait until a file is longer than `before` and grows no more, or until `give_up`, a time of time.monotonic()."""
    size = before
    while time.monotonic() < give_up:
        time.sleep(0.05)
        last, size = size, file.stat().st_size
        if size == last > before:
            return
