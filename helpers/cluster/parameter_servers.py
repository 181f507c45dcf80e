"""TensorFlow workers and parameter servers, each a process of its own, with the coordinator in this one.

    with start_servers(workers=2, ps=2) as cluster:
        cluster.strategy, cluster.coordinator       # TensorFlow's own, connected

On several hosts, each runs `python -m helpers.cluster.parameter_servers worker` (or `ps`) with its TF_CONFIG in the
environment, and the notebook calls `attach_servers(tf_config)` with the TF_CONFIG of the chief.

TensorFlow's servers, and the coordinator too, listen on every network interface without a password, whatever host the
cluster specification names (the address 0.0.0.0 is fixed in TensorFlow): whoever reaches a port can run operations in
that process. On an untrusted network close these ports with a firewall, or run everything in one container.
"""

import atexit
import contextlib
import functools
import gc
import json
import logging
import os
import sys
import threading

import joblib
import tensorflow as tf

from helpers.cluster.processes import Family
from helpers.cluster.rendezvous import LOOPBACK
from helpers.cluster.server_processes import ROLES, PortTaken, ServerFailure, Servers, serve

MIN_SHARD_BYTES = 256 << 10  # smaller variables stay whole, on one server
PORT_TRIES = 5
STOP_SECONDS = 10

_last = None  # the PSCluster that this process connected to last, open or closed


def start_servers(workers=2, ps=2, *, timeout=120):
    """Start workers and parameter servers on this machine and connect to them.

    A cluster that is still open in this process is closed first; its variables, datasets and scheduled functions are
    lost with it.

    Parameters
    ----------
    workers, ps : int
        How many of each.
    timeout : float
        Seconds that they may take to start.

    Returns
    -------
    PSCluster
        A context manager; the servers end with it.

    Raises
    ------
    ValueError
        For bad numbers.
    ServerFailure
        When the servers do not come up in time.
    """
    if min(workers, ps) < 1:
        raise ValueError(f"workers={workers}, ps={ps}: at least 1 of each is needed")
    cores = joblib.cpu_count()  # heeds affinity and the quota of a container, also on a Mac
    if workers + ps > cores:
        print(f"{workers + ps} servers share {cores} cores: expect correct results, not speed")
    for tries_left in reversed(range(PORT_TRIES)):
        addresses = _free_addresses(1 + workers + ps)
        spec = {"chief": addresses[:1], "worker": addresses[1 : 1 + workers], "ps": addresses[1 + workers :]}
        try:
            return PSCluster(spec, timeout, start=True)
        except PortTaken:
            if not tries_left:
                raise


def _free_addresses(n):
    """Addresses of this machine at which nobody listens: list of n str."""
    from ipyparallel.util import select_random_ports  # here: a server, which runs this file too, does not need it

    return [f"{LOOPBACK}:{port}" for port in select_random_ports(n)]


def attach_servers(tf_config=None, *, timeout=60):
    """Connect, as the chief, to workers and parameter servers that run elsewhere.

    Parameters
    ----------
    tf_config : dict or str, optional
        {"cluster": {"chief": [address], "worker": [...], "ps": [...]}}, or that as JSON text; by default the
        environment's TF_CONFIG. The chief's address must be one at which the servers can reach this process.
    timeout : float
        Seconds in which the servers must answer.

    Returns
    -------
    PSCluster
        A context manager that never stops the servers.

    Raises
    ------
    ValueError
        For a TF_CONFIG that lacks a role, or is no JSON.
    ServerFailure
        When a server does not answer in time.
    """
    spec = _parsed(tf_config).get("cluster", {})
    missing = [role for role in ("chief", *ROLES) if not spec.get(role)]
    if missing:
        raise ValueError(f"TF_CONFIG names no {' and no '.join(missing)}: its cluster needs chief, worker and ps")
    return PSCluster(spec, timeout, start=False)


def _parsed(tf_config=None):
    """A TF_CONFIG, dict or JSON text or None for that of the environment, as dict."""
    config = os.environ.get("TF_CONFIG", "{}") if tf_config is None else tf_config
    return json.loads(config) if isinstance(config, str) else config


class PSCluster(contextlib.AbstractContextManager):
    """A coordinator with its workers and parameter servers; a context manager.

    Made by `start_servers` or `attach_servers`. What TensorFlow says of servers that come and go is in the log of the
    chief, not in the notebook.

    Attributes
    ----------
    strategy : tf.distribute.ParameterServerStrategy
        A variable is cut into its size / 256 KiB shards, rounded up, but into no more than there are servers.
    coordinator : tf.distribute.coordinator.ClusterCoordinator
        Schedules functions on the workers.
    spec : dict
        Role to list of addresses.
    pids : dict
        (role, index) to process id of each server that was started here.
    logs : dict
        (role, index) to the path of the log of each server that was started here, and of ("chief", 0), which is this
        process. Those of servers go when this is closed, the chief's when this process ends.
    """

    def __init__(self, spec, timeout, start):
        global _last
        if _last:  # TensorFlow has one coordinator at a time
            _last.close()
        self.spec = spec
        self.strategy = None
        self.coordinator = None
        self._servers = Servers(spec)
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._servers)
            self.logs = self._servers.logs
            self.logs["chief", 0] = _chief_log()
            self._servers.start(self._servers.addresses if start else [], timeout)
            self._connect()
            self._undo = undo.pop_all()
        _last = self
        atexit.register(self.close)
        where = "processes started here" if start else "processes that run elsewhere"
        print(f"{len(self.spec['worker'])} workers and {len(self.spec['ps'])} parameter servers ready: {where}")

    @property
    def pids(self):
        """(role, index) to process id of each server that was started here."""
        return {task: process.pid for task, process in self._servers.processes.items()}

    def kill(self, role, index):
        """Kill a server at once, with SIGKILL.

        Parameters
        ----------
        role : {"worker", "ps"}
            Of the server.
        index : int
            Of the server.

        Raises
        ------
        ValueError
            For a server that was not started here.
        """
        if (role, index) not in self.pids:
            known = ", ".join(f"{role} {index}" for role, index in self.pids) or "none: they run elsewhere"
            raise ValueError(f"there is no server {role!r} {index} started here (there are: {known})")
        self._servers.kill([(role, index)])

    def restart(self, role, index, *, timeout=120):
        """Start a killed server again, on its old port.

        The coordinator takes a worker back by itself, and what was scheduled goes on. A parameter server comes back
        empty: then `strategy` and `coordinator` are new ones, and all tables, also those on the other servers, have to
        be made again and restored from a checkpoint.

        Parameters
        ----------
        role : {"worker", "ps"}
            Of the server.
        index : int
            Of the server.
        timeout : float
            Seconds that it may take to start.

        Raises
        ------
        ValueError
            For a server that was not started here.
        ServerFailure
            When it is not up in time.
        """
        self.kill(role, index)
        self._servers.start([(role, index)], timeout)
        if role == "ps":
            self._disconnect()
            self.spec["chief"] = _free_addresses(1)
            self._connect()

    def close(self):
        """Stop the coordinator, and the servers if `start_servers` started them. Can be called twice."""
        atexit.unregister(self.close)
        gc.collect()  # TensorFlow complains of each function that is collected after its servers are gone
        try:
            if self.coordinator is not None:
                self._disconnect()
        finally:
            self._undo.close()

    def __exit__(self, *exc):
        self.close()

    def _connect(self):
        spec = tf.train.ClusterSpec(self.spec)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, "", "chief", 0, rpc_layer="grpc")
        by_size = tf.distribute.experimental.partitioners.MinSizePartitioner(MIN_SHARD_BYTES, len(self.spec["ps"]))
        try:
            self.strategy = tf.distribute.ParameterServerStrategy(resolver, by_size)
        except tf.errors.UnknownError as error:
            if "Could not start gRPC server" not in str(error):
                raise
            what = f"the chief's port, {self.spec['chief'][0]}, is taken (a kernel keeps those of the clusters it had)"
            raise PortTaken(f"{what}: restart the kernel, or give the chief another port") from None
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)

    def _disconnect(self):
        """Stop the coordinator's threads. One that waits for a dead server holds TensorFlow until that is back."""
        coordinator, self.coordinator, self.strategy = self.coordinator, None, None
        try:
            self._servers.start(self._servers.dead(), STOP_SECONDS)
        except ServerFailure as error:
            print(f"{error}: restart the kernel before you connect to servers again")
        else:
            _stop_threads(coordinator)


@functools.cache
def _chief_log():
    """The file in which the messages about servers that come and go are from now on; it goes when this process ends.

    They cannot come back to the notebook when a cluster is closed: whenever a tensor of one that is gone is collected,
    there is another message. Of what TensorFlow says in Python only that of `tf.distribute` goes to the file. Of what
    it says in C++ all does: ipykernel shows file descriptor 2, where only C++ code writes, and tells that it does so
    only by where it keeps the original.
    """
    family = Family("chief")
    atexit.register(family.close)
    log = family.folder / "chief.log"
    messages = logging.FileHandler(log)

    def is_for_the_notebook(record):
        about_servers = f"{os.sep}distribute{os.sep}" in record.pathname
        if about_servers:
            messages.emit(record)
        return not about_servers

    tf.get_logger().addFilter(is_for_the_notebook)
    sys.unraisablehook = _logged(sys.unraisablehook, messages)
    threading.excepthook = _logged(threading.excepthook, messages)
    if hasattr(sys.stderr, "_original_stdstream_copy"):
        os.dup2(messages.stream.fileno(), 2)
    return log


def _logged(hook, messages):
    """Wrap a hook for exceptions that nobody can catch: those of TensorFlow's operations go to the log.

    Where a server is gone, they come from threads of the coordinator and from tensors that are collected.
    """

    def logged(args):
        if isinstance(args.exc_value, tf.errors.OpError):
            text = f"nobody can catch this: {args.exc_value!r}"
            messages.emit(logging.makeLogRecord({"msg": text}))
        else:
            hook(args)

    return logged


def _stop_threads(coordinator):
    """End the threads of a ClusterCoordinator, so that a second one can follow: TensorFlow expects one per process.

    (It has no public name for them.)
    """
    cluster = coordinator._cluster
    cluster.stop()
    cluster.failure_handler._preemption_handler_thread.join(STOP_SECONDS)
    for worker in cluster.workers:
        worker.executor.clear_error()  # else Python says it again when the executor is collected


def main(arguments):
    """Be the worker or parameter server of this TF_CONFIG; arguments: ["worker"] or ["ps"]."""
    config = _parsed()
    task = config.get("task", {})
    if task.get("type") not in ROLES or arguments != [task["type"]]:
        usage = "usage: TF_CONFIG=... python -m helpers.cluster.parameter_servers worker|ps"
        sys.exit(f"{usage}; TF_CONFIG must name the task of this process: its task is {task}")
    serve(config)


if __name__ == "__main__":
    main(sys.argv[1:])
