"""ipyparallel engines as Horovod ranks.

    with connect(2) as ranks:
        ranks.run(train, data)      # train(data) on every rank; results in rank order

In a notebook `%%px` then runs a cell on every rank. The kernel itself is not a rank: it starts the engines (or
attaches to those of a running `ipcluster`), gives each its Horovod environment, as `horovodrun` would, and has
each call `hvd.init()`.
"""

import atexit
import signal
import time

import cloudpickle
from ipyparallel.client.magics import ParallelMagics
from ipyparallel.datapub import publish_data
from IPython import get_ipython
from IPython.display import display
from tqdm.std import tqdm

from helpers.cluster import engines, on_engine
from helpers.cluster.engines import RankFailure

LOOPBACK = "127.0.0.1"
GRACE_SECONDS = 20  # how long the other ranks may go on after one has died
DEFAULT_ENV = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "30",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "10",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60",
}

_open = None  # the Ranks of this kernel: one at a time


def connect(n=2, *, timeout=60, controller=None, address=None, attach=True, env=None):
    """Turn n engines into n initialised Horovod ranks.

    n: number of ranks. timeout: seconds that each stage (engines up, Horovod up) may take.
    controller: "gloo", "mpi" or None (MPI where the engines were started by mpiexec, else Gloo).
    address: IP address of this machine that engines on other hosts can reach; None listens on loopback only.
    attach: use the engines of a running `ipcluster` when it answers and has n of them.
    env: environment variables set on every rank before `hvd.init()`, such as {"HOROVOD_FUSION_THRESHOLD": "0"}.

    Returns Ranks. Ranks that are still open in this kernel are closed first.
    Raises ValueError for bad arguments, RankFailure when ranks do not come up in time.
    """
    if n < 1:
        raise ValueError(f"n={n}: at least 1 rank is needed")
    if controller not in (None, "gloo", "mpi"):
        raise ValueError(f'controller={controller!r}: choose "gloo", "mpi" or None')
    if _open:
        _open.close()
    env = {**DEFAULT_ENV, **(env or {})}
    group = engines.attach(n, controller) if attach else None
    group = group or engines.start(n, controller, env, timeout)
    try:
        ranks = Ranks(group, engines.choose_controller(controller, group.found))
        ranks._initialise(address, env, timeout)
    except BaseException:
        group.stop()
        raise
    ranks._activate()
    where = "engines started here" if group.cluster else "engines of the running ipcluster"
    print(f"{n} ranks ready: {ranks.controller}, {ranks.threads} thread(s) each, {where}")
    return ranks


class Ranks:
    """n Horovod ranks on n engines; a context manager, made by `connect`.

    size: number of ranks. view: an ipyparallel DirectView whose i-th target is rank i. controller: "gloo" or "mpi".
    threads: TensorFlow and BLAS threads of each rank. engines: one dict per rank, in rank order (id, pid, host, log).
    """

    def __init__(self, group, controller):
        self._group, self._client, self.engines = group, group.client, group.found
        self.controller, self.size = controller, len(group.found)
        self.view = self._client.direct_view([engine["id"] for engine in self.engines])
        self.view.block = True
        self.threads = group.threads
        self._rendezvous = self._magics = None

    def run(self, fn, *args, progress=False, **kwargs):
        """Call fn(*args, **kwargs) on every rank; returns the list of results in rank order.

        progress=True shows one live line with what rank 0 last gave to `report`.
        Raises RankFailure when a rank dies, and what fn raised otherwise.
        """
        return self.wait(self.view.apply_async(on_engine.call, cloudpickle.dumps((fn, args, kwargs))), progress)

    def wait(self, call, progress=True):
        """Wait for an AsyncResult of `view`; returns its result. See `run`."""
        give_up, line = None, _LiveLine(progress)
        try:
            while not call.done():
                call.wait(0.2)
                line.show(call.data[0])
                if give_up is None and self.dead():
                    give_up = time.monotonic() + GRACE_SECONDS
                if give_up and (time.monotonic() > give_up or len(self.dead()) == self.size):
                    break
        except KeyboardInterrupt:
            self._interrupt(call)
            raise
        finally:
            line.close()
        if self.dead():
            raise self._failure("died") from None
        return call.get(timeout=GRACE_SECONDS)

    def dead(self):
        """The ranks whose engine is gone."""
        gone = self._group.gone()
        return [rank for rank, engine in enumerate(self.engines) if engine["id"] in gone]

    def close(self):
        """Shut Horovod down, and stop the engines if `connect` started them. Can be called twice."""
        global _open
        if _open is self:
            _open = None
        if self._group is None:
            return
        if self._magics:
            self._magics.ranks = None
        if not self._group.cluster and self.controller == "gloo" and not self.dead():
            # engines that are stuck in a collective do not answer; their own time limits free them
            self.view.apply_async(on_engine.shutdown).wait(engines.ANSWER_SECONDS)
        self._group.stop()
        if self._rendezvous:
            self._rendezvous.stop()
        self._group = self._rendezvous = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _initialise(self, address, env, timeout):
        """Call hvd.init() on each engine, then check size and ranks."""
        if self.controller == "gloo":
            if len({engine["host"] for engine in self.engines}) > 1 and address is None:
                raise ValueError(
                    "the engines are on several hosts: give connect(address=...) an IP address of this machine that "
                    "they can reach (Horovod's rendezvous has no password: trusted networks only)"
                )
            self._rendezvous = _Rendezvous(self.engines, address or LOOPBACK)
            envs = [{**slot, **env} for slot in self._rendezvous.envs]
        else:
            envs = [env] * self.size
        calls = [
            self._client[engine["id"]].apply_async(on_engine.initialise, rank_env, self.size, self.threads)
            for engine, rank_env in zip(self.engines, envs, strict=True)
        ]
        deadline = time.monotonic() + timeout
        while not all(call.done() for call in calls):
            if self.dead() or time.monotonic() > deadline:
                raise self._failure("died" if self.dead() else f"did not initialise Horovod within {timeout} s")
            time.sleep(0.05)
        found = [call.get() for call in calls]
        if found != [(rank, self.size) for rank in range(self.size)]:
            raise RankFailure(f"Horovod reports (rank, size) {found} where ranks 0 to {self.size - 1} are expected")
        self.view.execute("%reset -f").get(timeout=timeout)

    def _activate(self):
        global _open
        _open = self
        shell = get_ipython()
        if shell:
            self._magics = _RankMagics(shell, self.view)
            self._magics.ranks = self
            shell.register_magics(self._magics)

    def _failure(self, what):
        """Close everything and return the RankFailure that says why."""
        dead = self.dead() or list(range(self.size))
        endings = {rank: self._group.ending(self.engines[rank]) for rank in dead}
        # a rank aborts because another one has gone: name the other one first
        first = min(dead, key=lambda rank: "SIGABRT" in endings[rank])
        others = "".join(f"; rank {rank} went down with it{endings[rank]}" for rank in dead if rank != first)
        log = engines.tail(self.engines[first]["log"])
        name = f"rank {first} (engine {self.engines[first]['id']})"
        self.close()
        return RankFailure(
            f"{name} {what}{endings[first]}{others}. Call connect() again for new ranks.\n"
            f"The last lines of its log:\n{log}"
        )

    def _interrupt(self, call):
        """After Ctrl-C: interrupt the engines, then close. (Inside a collective they cannot be interrupted.)"""
        self._client.send_signal(signal.SIGINT, targets=self.view.targets, block=False)
        call.wait(engines.ANSWER_SECONDS)
        self.close()
        print("interrupted: these ranks are closed, connect() gives new ones")


def report(step, steps, loss, pairs_per_s):
    """Called on a rank, in a `%%px` cell or inside `ranks.run(fn, progress=True)`: what the live line shows."""
    publish_data({"step": step, "steps": steps, "loss": float(loss), "pairs_per_s": float(pairs_per_s)})


class _LiveLine:
    """One line with what rank 0 last reported, in a notebook or a terminal; nothing before its first report."""

    def __init__(self, wanted):
        self._wanted, self._shown, self._display, self._started = wanted, None, None, time.monotonic()

    def show(self, report):
        if not self._wanted or not report or report == self._shown:
            return
        self._shown = dict(report)
        said = f"rank 0: loss {report['loss']:.3f}, {report['pairs_per_s']:,.0f} pairs/s"
        elapsed = time.monotonic() - self._started
        line = tqdm.format_meter(report["step"], report["steps"], elapsed, ncols=100, unit="step", postfix=said)
        if get_ipython() is None:
            print(f"\r{line}", end="", flush=True)
        elif self._display is None:
            self._display = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._display.update({"text/plain": line}, raw=True)

    def close(self):
        if self._shown and get_ipython() is None:
            print()


class _Rendezvous:
    """A fresh Horovod rendezvous for these engines on one address; envs bring each engine to it.

    (Horovod's own RendezvousServer.start would listen on every interface.)
    """

    def __init__(self, found, address):
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
        from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer
        from horovod.runner.util.threads import in_thread

        hosts = [engine["host"] for engine in found]
        slots = ",".join(f"{host}:{hosts.count(host)}" for host in dict.fromkeys(hosts))
        plan = get_host_assignments(parse_hosts(slots), len(found))
        self._server = RendezvousHTTPServer((address, 0), RendezvousHandler, verbose=0)
        self._server.init(plan)
        shared = create_run_env_vars(address, [""], self._server.server_address[1])
        self.envs = [{k: str(v) for k, v in {**shared, **create_slot_env_vars(slot)}.items()} for slot in plan]
        self._thread = in_thread(self._server.serve_forever)

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


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


@atexit.register
def _close_at_exit():
    if _open:
        _open.close()
