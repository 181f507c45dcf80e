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
import time

from ipyparallel.client.magics import ParallelMagics
from IPython import get_ipython

from helpers.cluster import engines, on_engine
from helpers.cluster.engines import RankFailure
from helpers.cluster.live_line import LiveLine
from helpers.cluster.reaper import tail
from helpers.cluster.rendezvous import LOOPBACK, check_address, start_rendezvous

DEFAULT_ENV = {
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "30",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "10",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60",
}

_last = None  # the Ranks that this kernel connected to last, open or closed


def connect(n=2, *, timeout=60, grace=20, controller=None, address=None, attach=True, env=None):
    """Turn n engines into n initialised Horovod ranks.

    n: number of ranks. timeout: seconds that each stage (engines up, Horovod up) may take.
    grace: seconds that the other ranks may go on after one has died.
    controller: "gloo", "mpi" or None (MPI where the engines were started by mpiexec, else Gloo).
    address: IP address of this machine that engines on other hosts can reach; None listens on loopback only.
    attach: use the engines of a running `ipcluster` when it answers and has n of them.
    env: environment variables set on every rank before `hvd.init()`, such as {"HOROVOD_FUSION_THRESHOLD": "0"}. On
    engines that are started here those of TensorFlow too are in time.

    Returns Ranks. Ranks that are still open in this kernel are closed first.
    Raises ValueError for bad arguments, RankFailure when ranks do not come up in time. What it raises, and Ctrl-C too,
    leaves nothing running that it started but the process that forks engines, which ends with this one.
    """
    global _last
    _check(n, controller, address)
    if _last:
        _last.close()
    env = {**DEFAULT_ENV, **{name: str(value) for name, value in (env or {}).items()}}
    group = engines.attach(n, controller) if attach else None
    group = group or engines.start(n, controller, env, timeout)
    try:
        ranks = _last = Ranks(group, grace)
        ranks._initialise(address, env, timeout)
    except BaseException:
        group.undo.close()
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


class Ranks(contextlib.AbstractContextManager):
    """n Horovod ranks on n engines; a context manager, made by `connect`.

    size: number of ranks. view: an ipyparallel DirectView whose i-th target is rank i. controller: "gloo" or "mpi".
    threads: TensorFlow and BLAS threads of each rank. engines: one dict per rank, in rank order (id, pid, host, log).
    """

    def __init__(self, group, grace):
        self._group, self._grace, self._magics = group, grace, None
        self.engines, self.controller, self.threads = group.found, group.controller, group.threads
        self.size = len(self.engines)
        self.view = group.client.direct_view([engine["id"] for engine in self.engines])
        self.view.block = True
        self._undo = group.undo  # called in reverse order, each also when another one fails
        atexit.register(self.close)

    def run(self, fn, *args, progress=False, **kwargs):
        """Call fn(*args, **kwargs) on every rank; returns the list of results in rank order.

        progress=True shows one live line with what rank 0 last gave to `report`.
        Raises RankFailure when a rank dies, and what fn raised otherwise.
        """
        # (a closure travels as one cloudpickle; what is given to apply_async itself arrives as read-only arrays)
        return self.wait(self.view.apply_async(lambda: fn(*args, **kwargs)), progress)

    def wait(self, call, progress=True, timeout=math.inf):
        """Wait `timeout` seconds for an AsyncResult of `view`; returns its result. See `run`."""
        give_up, line = time.monotonic() + timeout, LiveLine(progress)
        try:
            while not call.done() and time.monotonic() < give_up and (not self.dead() or self._awaited(call)):
                call.wait(0.2)
                line.show(call.data[0])
                if self.dead():
                    give_up = min(give_up, time.monotonic() + self._grace)
        except KeyboardInterrupt:
            self._interrupt(call)
            raise
        finally:
            line.close()
        if self.dead() or not call.done():
            raise self._failure("died" if self.dead() else f"did not answer within {timeout} s")
        return call.get()

    def _awaited(self, call):
        """The ranks that live and have not answered yet."""
        due = self.view.client.outstanding
        return {rank for rank, message in enumerate(call.msg_ids) if message in due} - set(self.dead())

    def dead(self):
        """The ranks whose engine is gone."""
        gone = self._group.gone()
        return [rank for rank, engine in enumerate(self.engines) if engine["id"] in gone]

    def close(self):
        """Shut Horovod down, and stop the engines if `connect` started them. Can be called twice."""
        atexit.unregister(self.close)
        if self._magics:
            self._magics.ranks = None
        self._undo.close()

    def __exit__(self, *exc):
        self.close()

    def _initialise(self, address, env, timeout):
        """Call hvd.init() on each engine, check size and ranks, and send %px to them."""
        envs = [env] * self.size
        if self.controller == "gloo":
            if len({engine["host"] for engine in self.engines}) > 1 and address is None:
                what = "an IP address of this machine that they can reach (no password: trusted networks only)"
                raise ValueError(f"the engines are on several hosts: give connect(address=...) {what}")
            slots = start_rendezvous(self.engines, address or LOOPBACK, self._undo)
            if not self._group.ours:
                self._undo.callback(self._shut_horovod_down)
            envs = [{**slot, **env} for slot in slots]
        call = self.view.map_async(functools.partial(on_engine.initialise, self.size, self.threads), envs)
        found = self.wait(call, progress=False, timeout=timeout)
        if found != [(rank, self.size) for rank in range(self.size)]:
            raise RankFailure(f"Horovod reports (rank, size) {found} where ranks 0 to {self.size - 1} are expected")
        self.view.use_cloudpickle()
        self.view.execute("%reset -f").get(timeout=timeout)
        if shell := get_ipython():
            self._magics = _RankMagics(shell, self.view)
            self._magics.ranks = self
            shell.register_magics(self._magics)

    def _shut_horovod_down(self):
        """Let engines that live on join other ranks later; those stuck in a collective have their own time limits."""
        if not self.dead():
            self.view.apply_async(on_engine.shutdown).wait(engines.ANSWER_SECONDS)

    def _failure(self, what):
        """Close everything and return the RankFailure that says why."""
        dead = self.dead() or range(self.size)
        endings = {rank: self._group.ending(self.engines[rank]) for rank in dead}
        # a rank aborts because another one is no more: name the other one first
        first, *others = sorted(dead, key=lambda rank: "SIGABRT" in endings[rank])
        also = "".join(f"; rank {rank} ended with it{endings[rank]}" for rank in others)
        engine = self.engines[first]
        said = tail(engine["log"])
        self.close()
        return RankFailure(
            f"rank {first} (engine {engine['id']}) {what}{endings[first]}{also}. Call connect() again for new ranks.\n"
            f"The last lines of its log:\n{said}"
        )

    def _interrupt(self, call):
        """After Ctrl-C: interrupt the engines, then close. (Inside a collective they cannot be interrupted.)"""
        self._group.interrupt()
        call.wait(engines.ANSWER_SECONDS)
        self.close()
        print("interrupted: these ranks are closed, connect() gives new ones")


class _RankMagics(ParallelMagics):
    """%px and %%px in rank order, which notice a dead rank and a Ctrl-C."""

    ranks = None

    def parallel_execute(self, cell, block=None, groupby="type", save_name=None, **ignored):
        if self.ranks is None:
            raise RankFailure("the ranks are closed: call connect() again")
        call = super().parallel_execute(cell, block=False, save_name=save_name)
        if not (self.view.block if block is None else block):
            return call
        try:
            self.ranks.wait(call)
        finally:
            if call.done():
                call.wait_for_output(1)
                call.display_outputs(groupby)
