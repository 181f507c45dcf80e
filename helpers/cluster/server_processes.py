"""Where the processes of TensorFlow servers come from and how they end: used by `helpers.cluster.parameter_servers`."""

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

import psutil
from tqdm.std import tqdm

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # before TensorFlow: a call to a dead server fails, not waits

import tensorflow as tf

LOOPBACK = "127.0.0.1"
ROLES = ("worker", "ps")
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
HTTP2_SETTINGS = 4


class ServerFailure(RuntimeError):
    """A worker or parameter server did not start, died or does not answer. Names it and ends with its log."""


class PortTaken(ServerFailure):
    """The port that we chose was taken by someone else before the server had it."""


class Nursery:
    """A child process that has imported TensorFlow once and forks the servers: each is there in a fraction of a second.

    It kills them, removes their logs and ends when its stdin closes, so also when this process is killed.
    """

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="servers-")
        self.pids, self.logs = {}, {}
        self._log = Path(self.directory, "start.log")
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "helpers.cluster.server_processes", self.directory],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def fork(self, spec, role, index, timeout):
        """Start one server."""
        log = self.logs[role, index] = Path(self.directory, f"{role}{index}.log")
        config = {"cluster": spec, "task": {"type": role, "index": index}}
        try:
            self._process.stdin.write(json.dumps([config, str(log)]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("ended") from None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise self._failure(f"did not import TensorFlow within {timeout} s")
        answer = self._process.stdout.readline()
        if not answer:
            raise self._failure("ended")
        self.pids[role, index] = int(answer)

    def dead(self):
        """The (role, index) of the servers that are no more."""
        return [task for task, pid in self.pids.items() if not psutil.pid_exists(pid)]

    def kill(self, role, index):
        pid = self.pids[role, index]
        if psutil.pid_exists(pid):
            process = psutil.Process(pid)
            process.kill()
            process.wait(10)

    def kill_all(self):
        for role, index in self.pids:
            self.kill(role, index)
        self.pids.clear()

    def stop(self):
        if self._process.stdin.closed:
            return
        self.kill_all()
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _failure(self, what):
        return ServerFailure(f"the process that starts the servers {what}. It said:\n{_tail(self._log)}")


def serve(config):
    """Be the worker or parameter server of this TF_CONFIG (a dict). Returns the running `tf.distribute.Server`."""
    spec, task = config["cluster"], config["task"]
    host = spec[task["type"]][task["index"]].rsplit(":", 1)[0]
    neighbours = sum(address.rsplit(":", 1)[0] == host for address in tasks(spec).values())
    options = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=max(1, len(os.sched_getaffinity(0)) // neighbours),
        # with a single one, a worker's function that waits for a server blocks the thread that would answer it
        inter_op_parallelism_threads=len(spec["worker"]) + 2,
    )
    cluster = tf.train.ClusterSpec(spec)
    return tf.distribute.Server(cluster, task["type"], task["index"], protocol="grpc", config=options)


def serve_forever(config, parent=None):
    server = serve(config)
    print(f"serving at {server.target}", flush=True)
    while parent in (None, os.getppid()):
        time.sleep(0.5)


def _fork_servers():
    """For each line of stdin, [TF_CONFIG, path of the log], fork a server and print its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent, children = os.getpid(), []
    for line in sys.stdin.buffer:
        config, log = json.loads(line)
        child = os.fork()
        if not child:
            _be_server(config, log, parent)
        children.append(child)
        print(child, flush=True)
    for child in filter(psutil.pid_exists, children):
        os.kill(child, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


def _be_server(config, log, parent):
    """Never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        serve_forever(config, parent)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def launch(nursery, spec, timeout):
    deadline = time.monotonic() + timeout
    for role, index in tasks(spec):
        nursery.fork(spec, role, index, max(1, deadline - time.monotonic()))
    wait(tasks(spec), max(1, deadline - time.monotonic()), nursery)


def wait(addresses, timeout, nursery=None):
    """Wait until every address of addresses, {(role, index): address}, answers as a gRPC server does."""
    deadline, silent = time.monotonic() + timeout, dict(addresses)
    with tqdm(total=len(addresses), desc="servers that answer", file=sys.stdout, leave=False) as bar:
        while silent:
            for task, address in list(silent.items()):
                if answers(address):
                    del silent[task]
                    bar.update()
            for task in nursery.dead() if nursery else []:
                if task in addresses:
                    raise _death(nursery, *task)
            if silent and time.monotonic() > deadline:
                names = ", ".join(f"{role} {index} at {address}" for (role, index), address in silent.items())
                raise ServerFailure(f"no answer within {timeout:.0f} s from {names}")
            time.sleep(0.05)


def answers(address):
    """Whether somebody speaks HTTP/2 there. (TensorFlow's own connect would wait for minutes.)"""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=0.5) as connection:
            connection.sendall(HTTP2_HELLO)
            return connection.recv(9)[3:4] == bytes([HTTP2_SETTINGS])
    except OSError:
        return False


def _death(nursery, role, index):
    said = _tail(nursery.logs[role, index])
    kind = PortTaken if "Could not start gRPC server" in said else ServerFailure
    return kind(f"{role} {index} died while it started. The last lines of its log:\n{said}")


def _tail(log, lines=10):
    return "\n".join(Path(log).read_text(errors="replace").splitlines()[-lines:])


def tasks(spec):
    """{(role, index): address} of the workers and parameter servers."""
    return {(role, index): address for role in ROLES for index, address in enumerate(spec[role])}


def local_spec(workers, ps):
    addresses = [f"{LOOPBACK}:{port}" for port in free_ports(1 + workers + ps)]
    return {"chief": addresses[:1], "worker": addresses[1 : 1 + workers], "ps": addresses[1 + workers :]}


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    _fork_servers()
