"""Where the processes of TensorFlow's servers come from and how they end; see `helpers.cluster.parameter_servers`."""

import contextlib
import os
import signal
import time

import grpc
import joblib
import psutil

from helpers.cluster.forks import forker
from helpers.cluster.reaper import ended, kill, tail

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # before TensorFlow: a call to a dead server fails, not waits

import tensorflow as tf

ROLES = ("worker", "ps")
# of grpc: look every tenth of a second, and not through a proxy
PROBE = [("grpc.enable_http_proxy", 0), *((f"grpc.{w}_reconnect_backoff_ms", 100) for w in ("initial", "min", "max"))]


class ServerFailure(RuntimeError):
    """A worker or parameter server did not start, died or does not answer. Names it and ends with its log."""


class PortTaken(ServerFailure):
    """A port that was to be listened on is somebody else's."""


class Servers:
    """The servers of one cluster, whether started here or elsewhere.

    spec: dict, role -> addresses. addresses: dict, (role, index) -> address of each worker and parameter server.
    processes, logs: dict, (role, index) -> psutil.Process, and path of its log, of those that were started here.
    A psutil.Process knows when the process began: it never kills another one that was given the same id.
    """

    def __init__(self, spec):
        self.spec, self.processes, self.logs = spec, {}, {}
        self.addresses = {(role, index): address for role in ROLES for index, address in enumerate(spec[role])}

    def start(self, tasks, timeout):
        """Start the servers of these (role, index); wait until they and all others not known to be dead answer.

        timeout: seconds that each of the two may take. (TensorFlow would wait for minutes when it connects.)
        """
        due = [task for task in self.addresses if task in tasks or task not in self.dead()]
        for role, index in tasks:
            config = {"cluster": self.spec, "task": {"type": role, "index": index}}
            ours, no_gpu = forker(), {"CUDA_VISIBLE_DEVICES": ""}
            log = self.logs[role, index] = ours.directory / f"{role}{index}-{time.monotonic_ns()}.log"
            try:
                self.processes[role, index] = ours.fork(serve, config, env=no_gpu, log=log, timeout=timeout)
            except TimeoutError as error:
                raise ServerFailure(f"no server was started: {error}") from None
            except psutil.NoSuchProcess:
                raise self._death(role, index) from None
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
        """Those started here that are no more."""
        return [task for task, process in self.processes.items() if ended(process)]

    def kill(self, tasks):
        kill(self.processes[task] for task in tasks)

    def _death(self, role, index):
        said = tail(self.logs[role, index])
        kind = PortTaken if "Could not start gRPC server" in said else ServerFailure
        return kind(f"{role} {index} died while it started. The last lines of its log:\n{said}")


def serve(config):
    """Be the worker or parameter server of this TF_CONFIG, a dict, for good."""
    spec, task = config["cluster"], config["task"]
    hosts = [address.rsplit(":", 1)[0] for role in ROLES for address in spec[role]]
    neighbours = hosts.count(spec[task["type"]][task["index"]].rsplit(":", 1)[0])
    options = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=max(1, joblib.cpu_count() // neighbours),
        # with a single one, a worker's function that waits for a server blocks the thread that would answer it
        inter_op_parallelism_threads=len(spec["worker"]) + 2,
    )
    server = tf.distribute.Server(tf.train.ClusterSpec(spec), task["type"], task["index"], "grpc", options)
    print(f"serving at {server.target}", flush=True)
    signal.pause()
