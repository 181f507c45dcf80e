"""Where the processes of TensorFlow's servers come from and how they end; see `helpers.cluster.parameter_servers`."""

import atexit
import contextlib
import functools
import json
import multiprocessing
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import grpc
import joblib
import psutil

from helpers.cluster.reaper import kill, start_child, tail

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # before TensorFlow: a call to a dead server fails, not waits

import tensorflow as tf

ROLES = ("worker", "ps")
# of grpc: look every tenth of a second, and not through a proxy
PROBE = [(f"grpc.{when}_reconnect_backoff_ms", 100) for when in ("initial", "min", "max")]
PROBE += [("grpc.enable_http_proxy", 0)]


class ServerFailure(RuntimeError):
    """A worker or parameter server did not start, died or does not answer. Names it and ends with its log."""


class PortTaken(ServerFailure):
    """A port that was to be listened on is somebody else's."""


class Launcher:
    """A child process that has imported TensorFlow once and forks servers, each in a fraction of a second.

    It stays for the clusters to come, and ends with its servers and their logs when this process does, also by SIGKILL.
    Not multiprocessing's forkserver, which starts no faster, but runs the caller's script again in each server, lets
    a notebook's interrupt reach them, and prints what TensorFlow says when it is imported.
    """

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="servers-")
        self._log = Path(self.directory, "start.log")
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OPENBLAS_NUM_THREADS": "1"}
        with open(self._log, "w") as log:
            self.process = start_child("server_processes", self.directory, env=env, stderr=log)
        atexit.register(self.stop)

    def fork(self, config, log, timeout):
        """Start the server of a TF_CONFIG, a dict: its psutil.Process. psutil.NoSuchProcess if it is no more."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)  # also when interrupted: the next answer would be that of this call
            try:
                print(json.dumps([config, str(log)]), file=self.process.stdin, flush=True)
                answered = select.select([self.process.stdout], [], [], timeout)[0]
                pid = int(self.process.stdout.readline() if answered else "")
            except (OSError, ValueError):
                what = f"has not imported TensorFlow within {timeout:.0f} s, or ended"
                said = tail(self._log)
                raise ServerFailure(f"the process that starts the servers {what}. It said:\n{said}") from None
            undo.pop_all()
        server = psutil.Process(pid)
        if server.ppid() != self.process.pid:  # the id belongs to somebody else already
            raise psutil.NoSuchProcess(pid)
        return server

    def stop(self):
        launcher.cache_clear()
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.directory, ignore_errors=True)


@functools.cache
def launcher():
    """The launcher of this process, started when it is first needed."""
    return Launcher()


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
            log = self.logs[role, index] = Path(launcher().directory, f"{role}{index}-{time.monotonic_ns()}.log")
            try:
                self.processes[role, index] = launcher().fork(config, log, timeout)
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
        return [task for task, process in self.processes.items() if not process.is_running()]

    def kill(self, tasks):
        kill(self.processes[task] for task in tasks)

    def _death(self, role, index):
        said = tail(self.logs[role, index])
        kind = PortTaken if "Could not start gRPC server" in said else ServerFailure
        return kind(f"{role} {index} died while it started. The last lines of its log:\n{said}")


def serve(config, until):
    """Be the worker or parameter server of this TF_CONFIG, a dict, until `until()` returns."""
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
    until()


def main(directory):
    """For each line of stdin, [TF_CONFIG, path of the log], fork a server and print its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: a server that has ended is no more
    for line in sys.stdin:
        server = multiprocessing.get_context("fork").Process(target=_serve_until_we_end, args=json.loads(line))
        server.start()
        print(server.pid, flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)  # multiprocessing would wait for the servers, and they wait for us


def _serve_until_we_end(config, log):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    serve(config, until=multiprocessing.parent_process().join)


if __name__ == "__main__":
    main(sys.argv[1])
