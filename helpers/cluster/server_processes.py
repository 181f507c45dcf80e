"""Where the processes of TensorFlow's servers come from and how they end; see `helpers.cluster.parameter_servers`."""

import atexit
import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import grpc
import joblib
import psutil
from tqdm.std import tqdm

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # before TensorFlow: a call to a dead server fails, not waits

import tensorflow as tf

LOOPBACK = "127.0.0.1"
ROLES = ("worker", "ps")
PORT_TRIES = 5
PROBE = [  # of grpc: look every tenth of a second, and not through a proxy
    *((f"grpc.{when}_reconnect_backoff_ms", 100) for when in ("initial", "min", "max")),
    ("grpc.enable_http_proxy", 0),
]


class ServerFailure(RuntimeError):
    """A worker or parameter server did not start, died or does not answer. Names it and ends with its log."""


class PortTaken(ServerFailure):
    """The port that we chose was taken by someone else before the server had it."""


class Launcher:
    """A child process that has imported TensorFlow once and forks servers, each in a fraction of a second.

    It stays for the clusters to come, and ends with its servers and their logs when this process does, also by SIGKILL.
    Not multiprocessing's forkserver, which starts no faster, but runs the caller's script again in each server, lets
    a notebook's interrupt reach them, and prints what TensorFlow says when it is imported.
    """

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="servers-")
        self._log = Path(self.directory, "start.log")
        with open(self._log, "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "helpers.cluster.server_processes", self.directory],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        atexit.register(self.stop)

    def fork(self, config, log, timeout):
        """Start the server of a TF_CONFIG, a dict: its psutil.Process. psutil.NoSuchProcess if it is no more."""
        try:
            self.process.stdin.write(json.dumps([config, str(log)]).encode() + b"\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                raise TimeoutError
            child = int(self.process.stdout.readline())
        except BaseException as error:  # also when interrupted: the next answer would be that of this call
            said = _tail(self._log)
            self.stop()
            if not isinstance(error, (OSError, ValueError)):
                raise
            what = f"has not imported TensorFlow within {timeout:.0f} s, or ended"
            raise ServerFailure(f"the process that starts the servers {what}. It said:\n{said}") from None
        server = psutil.Process(child)
        if server.ppid() != self.process.pid:  # the id belongs to somebody else already
            raise psutil.NoSuchProcess(child)
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
    """The servers of one cluster, all on this machine.

    spec: dict, role -> addresses. processes, logs: dict, (role, index) -> psutil.Process, and path of its log.
    A psutil.Process knows when the process began: it never kills another one that was given the same id.
    """

    def __init__(self, workers, ps, timeout):
        """Start them. Tries other ports where one was taken. ServerFailure if they are not up in `timeout` seconds."""
        self.processes, self.logs = {}, {}
        for attempt in range(PORT_TRIES):
            addresses = [f"{LOOPBACK}:{port}" for port in free_ports(1 + workers + ps)]
            self.spec = {"chief": addresses[:1], "worker": addresses[1 : 1 + workers], "ps": addresses[1 + workers :]}
            try:
                return self.start(tasks(self.spec), timeout)
            except BaseException as error:
                self.kill_all()
                if not isinstance(error, PortTaken) or attempt == PORT_TRIES - 1:
                    raise

    def start(self, some, timeout):
        """Start the servers of these (role, index) and wait until they answer."""
        deadline = time.monotonic() + timeout
        for role, index in some:
            config = {"cluster": self.spec, "task": {"type": role, "index": index}}
            ours, left = launcher(), max(1, deadline - time.monotonic())
            log = self.logs[role, index] = Path(ours.directory, f"{role}{index}-{time.monotonic_ns()}.log")
            try:
                self.processes[role, index] = ours.fork(config, log, left)
            except psutil.NoSuchProcess:
                raise self.death(role, index) from None
        addresses = {(role, index): self.spec[role][index] for role, index in some}
        wait(addresses, max(1, deadline - time.monotonic()), self)

    def death(self, role, index):
        said = _tail(self.logs[role, index])
        kind = PortTaken if "Could not start gRPC server" in said else ServerFailure
        return kind(f"{role} {index} died while it started. The last lines of its log:\n{said}")

    def dead(self):
        return [task for task, process in self.processes.items() if not process.is_running()]

    def kill(self, task):
        with contextlib.suppress(psutil.NoSuchProcess):
            self.processes[task].kill()
            self.processes[task].wait(10)

    def kill_all(self):
        for task in self.processes:
            self.kill(task)


def serve(config, until):
    """Be the worker or parameter server of this TF_CONFIG, a dict, until `until()` returns."""
    spec, task = config["cluster"], config["task"]
    host = spec[task["type"]][task["index"]].rsplit(":", 1)[0]
    neighbours = sum(address.rsplit(":", 1)[0] == host for address in tasks(spec).values())
    options = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=max(1, joblib.cpu_count() // neighbours),
        # with a single one, a worker's function that waits for a server blocks the thread that would answer it
        inter_op_parallelism_threads=len(spec["worker"]) + 2,
    )
    server = tf.distribute.Server(tf.train.ClusterSpec(spec), task["type"], task["index"], "grpc", options)
    print(f"serving at {server.target}", flush=True)
    until()


def _fork_servers(directory):
    """For each line of stdin, [TF_CONFIG, path of the log], fork a server and print its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    alive, ours = os.pipe()  # its end is closed when this process is no more
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            os.close(ours)
            _be_server(*json.loads(line), alive)
        print(child, flush=True)
    shutil.rmtree(directory, ignore_errors=True)


def _be_server(config, log, alive):
    """Never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        for stream in (1, 2):
            os.dup2(output, stream)
        serve(config, until=lambda: os.read(alive, 1))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def wait(addresses, timeout, servers=None):
    """Wait until every address of addresses, {(role, index): address}, answers as a gRPC server does.

    TensorFlow's own connect would wait for minutes. servers: the Servers that may die meanwhile.
    """
    deadline = time.monotonic() + timeout
    bar = functools.partial(tqdm, desc="servers that answer", delay=1, file=sys.stdout, leave=False)
    with contextlib.ExitStack() as stack, bar(total=len(addresses)) as progress:
        channels = [stack.enter_context(grpc.insecure_channel(address, PROBE)) for address in addresses.values()]
        ready = dict(zip(addresses, map(grpc.channel_ready_future, channels), strict=True))
        while waiting := [task for task in addresses if not ready[task].done()]:
            progress.update(len(addresses) - len(waiting) - progress.n)
            for task in set(waiting).intersection(servers.dead() if servers else []):
                raise servers.death(*task)
            if time.monotonic() > deadline:
                names = ", ".join(f"{role} {index} at {addresses[role, index]}" for role, index in waiting)
                raise ServerFailure(f"no answer within {timeout:.0f} s from {names}")
            time.sleep(0.02)


def _tail(log, lines=10):
    text = Path(log).read_text(errors="replace") if Path(log).exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def tasks(spec):
    """{(role, index): address} of the workers and parameter servers."""
    return {(role, index): address for role in ROLES for index, address in enumerate(spec[role])}


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]


if __name__ == "__main__":
    _fork_servers(sys.argv[1])
