"""Where the processes of TensorFlow's servers come from and how they end; see `helpers.cluster.parameter_servers`."""

import contextlib
import json
import os
import signal
import sys
import time

import grpc
import joblib

from helpers.cluster.logs import tail
from helpers.cluster.processes import Family, ended, kill

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # a call to a dead server fails, and does not wait

ROLES = ("worker", "ps")
# of grpc: look every tenth of a second, and not through a proxy
PROBE = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
]


class ServerFailure(RuntimeError):
    """A worker or parameter server did not start, died or does not answer. Names it and ends with its log."""


class PortTaken(ServerFailure):
    """A port that was to be listened on is somebody else's."""


class Servers(contextlib.AbstractContextManager):
    """The servers of one cluster, whether started here or elsewhere; those started here end when it is closed.

    Parameters
    ----------
    spec : dict
        Role to list of addresses, as in a TF_CONFIG.

    Attributes
    ----------
    addresses : dict
        (role, index) to address, of each worker and parameter server.
    processes, logs : dict
        (role, index) to psutil.Process, and to the path of its log, of those that were started here. (A psutil.Process
        knows when the process began: it never kills another one that was given the same id.)
    folder : Path
        Of the logs; it goes when this is closed.
    """

    def __init__(self, spec):
        self.spec = spec
        self.processes = {}
        self.logs = {}
        self.addresses = {(role, index): address for role in ROLES for index, address in enumerate(spec[role])}
        self._family = Family("servers")
        self.folder = self._family.folder

    def start(self, tasks, timeout):
        """Start servers, and wait until they and all others not known to be dead answer.

        Parameters
        ----------
        tasks : iterable of (str, int)
            (role, index) of those to start.
        timeout : float
            Seconds that it may take. (TensorFlow would wait for minutes when it connects.)

        Raises
        ------
        ServerFailure
            If one dies meanwhile, or does not answer in time.
        """
        tasks = list(tasks)
        due = [task for task in self.addresses if task in tasks or task not in self.dead()]
        for role, index in tasks:
            config = {"cluster": self.spec, "task": {"type": role, "index": index}}
            log = self.folder / f"{role}{index}-{time.monotonic_ns()}.log"
            self.logs[role, index] = log
            self.processes[role, index] = self._family.start(
                [sys.executable, "-m", "helpers.cluster.server_process", role],
                env={"TF_CONFIG": json.dumps(config), "CUDA_VISIBLE_DEVICES": ""},
                log=log,
            )
        self._wait(due, timeout)

    def _wait(self, tasks, timeout):
        deadline = time.monotonic() + timeout
        with contextlib.ExitStack() as stack:
            channels = [stack.enter_context(grpc.insecure_channel(self.addresses[task], PROBE)) for task in tasks]
            ready = dict(zip(tasks, map(grpc.channel_ready_future, channels), strict=True))
            while waiting := [task for task in tasks if not ready[task].done()]:
                for task in set(waiting).intersection(self.dead()):
                    raise self._death(*task)
                if time.monotonic() > deadline:
                    names = ", ".join(f"{role} {index} at {self.addresses[role, index]}" for role, index in waiting)
                    raise ServerFailure(f"no answer within {timeout:.0f} s from {names}")
                time.sleep(0.02)

    def dead(self):
        """Those started here that are no more: list of (role, index)."""
        return [task for task, process in self.processes.items() if ended(process)]

    def kill(self, tasks):
        """Kill these servers at once, with SIGKILL."""
        kill(self.processes[task] for task in tasks)

    def close(self):
        """End all servers that were started here, and remove their logs. Can be called twice."""
        self._family.close()

    def __exit__(self, *exc):
        self.close()

    def _death(self, role, index):
        said = tail(self.logs[role, index])
        kind = PortTaken if "Could not start gRPC server" in said else ServerFailure
        return kind(f"{role} {index} died while it started. The last lines of its log:\n{said}")


def serve(config):
    """Be a worker or parameter server, for good.

    Parameters
    ----------
    config : dict
        A TF_CONFIG whose task is this process.
    """
    import tensorflow as tf

    spec = config["cluster"]
    task = config["task"]
    hosts = [address.rsplit(":", 1)[0] for role in ROLES for address in spec[role]]
    own_host = spec[task["type"]][task["index"]].rsplit(":", 1)[0]
    options = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=max(1, joblib.cpu_count() // hosts.count(own_host)),
        # with a single one, a worker's function that waits for a server blocks the thread that would answer it
        inter_op_parallelism_threads=len(spec["worker"]) + 2,
    )
    server = tf.distribute.Server(tf.train.ClusterSpec(spec), task["type"], task["index"], "grpc", options)
    print(f"serving at {server.target}", flush=True)
    signal.pause()
