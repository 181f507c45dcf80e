"""Bytes between ranks: sockets that count them, seconds against bytes with a fitted line, and Horovod's timeline."""

import json
import socket
import threading
import time
from statistics import median

import numpy as np
from scipy.optimize import nnls


class Wires:
    """A TCP connection from this rank to every other one on this machine. Counts bytes sent and received.

    gather: called with an object, it returns the list of all ranks' objects, in rank order (`hvd.allgather_object`).
    """

    def __init__(self, rank, size, gather):
        self.rank, self.size, self.sent, self.received, self.to = rank, size, 0, 0, {}
        with socket.create_server(("127.0.0.1", 0)) as door:
            ports = gather(door.getsockname()[1])
            for other in range(rank):
                self.to[other] = socket.create_connection(("127.0.0.1", ports[other]))
                self.to[other].sendall(bytes([rank]))
            while len(self.to) < size - 1:
                wire, _ = door.accept()
                self.to[wire.recv(1)[0]] = wire
        for wire in self.to.values():
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)  # else small messages may wait 40 ms

    def send(self, other, array):
        """Send a contiguous array to another rank."""
        self.to[other].sendall(array)
        self.sent += array.nbytes

    def receive(self, other, array):
        """Fill a contiguous array with what another rank sends. Raises ConnectionError if it hangs up."""
        rest = memoryview(array.view(np.uint8))
        while rest:
            count = self.to[other].recv_into(rest)
            if not count:
                raise ConnectionError(f"rank {other} closed its end with {len(rest)} bytes still to come")
            rest = rest[count:]
        self.received += array.nbytes

    def exchange(self, right, out, left, into):
        """Send `out` to one rank and, at the same time, fill `into` from another."""
        sender = threading.Thread(target=self.send, args=(right, out))
        sender.start()
        self.receive(left, into)
        sender.join()

    def close(self):
        for wire in self.to.values():
            wire.close()


def ring_bytes(size, n_bytes):
    """The bytes that each of `size` ranks sends, and receives, in a ring allreduce of n_bytes."""
    return 2 * (size - 1) / size * n_bytes


def median_seconds(work, repeats):
    """The median of the seconds that work() takes, after one call that does not count."""
    work()
    marks = [time.perf_counter()]
    for _ in range(repeats):
        work()
        marks.append(time.perf_counter())
    return median(np.diff(marks))


def allreduce_seconds(n_bytes, repeats, tensors=1):
    """On every rank: median seconds of a tf.function that allreduces float32 tensors of n_bytes each with Horovod."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    values = [tf.ones([n_bytes // 4]) for _ in range(tensors)]  # one tensor many times would be reduced once
    names = [f"bytes_{n_bytes}_{tensors}_{i}" for i in range(tensors)]
    reduce = tf.function(lambda: [hvd.allreduce(v, op=hvd.Sum, name=n) for v, n in zip(values, names)])
    return median_seconds(reduce, repeats)


def tcp_seconds(wires, n_bytes, repeats):
    """Median seconds to move the bytes of a ring allreduce of n_bytes over bare sockets, without any arithmetic."""
    right, left = (wires.rank + 1) % wires.size, (wires.rank - 1) % wires.size
    out, into = np.ones([2, n_bytes // 4 // wires.size], np.float32)

    def ring():
        for _ in range(2 * (wires.size - 1)):
            wires.exchange(right, out, left, into)

    return median_seconds(ring, repeats)


def compare_with_tcp(n_bytes, repeats):
    """On every rank: (seconds of Horovod's allreduce of n_bytes, seconds of bare sockets for the same bytes)."""
    import horovod.tensorflow as hvd

    wires = Wires(hvd.rank(), hvd.size(), hvd.allgather_object)
    seconds = allreduce_seconds(n_bytes, repeats), tcp_seconds(wires, n_bytes, repeats)
    wires.close()
    return seconds


def fit_line(n_bytes, seconds):
    """Fit seconds = latency + bytes / bandwidth, least squares in the relative error, neither negative.

    n_bytes, seconds: sequences of numbers. Returns (latency in s, bandwidth in bytes/s, RMS of the relative errors).
    """
    megabytes, seconds = np.asarray(n_bytes) / 1e6, np.asarray(seconds)
    terms = np.stack([np.ones(len(seconds)), megabytes], axis=1) / seconds[:, None]
    (latency, per_megabyte), residual = nnls(terms, np.ones(len(seconds)))
    return latency, 1e6 / per_megabyte if per_megabyte else np.inf, residual / np.sqrt(len(seconds))


def timeline_spans(path):
    """The spans in a Horovod timeline file: rows (tensor, what, start, end), in ms since the first of them."""
    with open(path) as file:
        text = file.read().rstrip().rstrip("],")
    names, begun, spans = {}, {}, []
    for event in json.loads(text + "]"):
        lane = event.get("pid")
        if event.get("name") == "process_name":
            names[lane] = event["args"].get("name", "")
        elif event["ph"] == "B":
            begun.setdefault(lane, []).append((event["name"], event["ts"]))
        elif event["ph"] == "E" and begun.get(lane):
            what, start = begun[lane].pop()
            spans.append((names[lane], what, start, event["ts"]))
    first = min((start for _, _, start, _ in spans), default=0)
    return [(name, what, (start - first) / 1e3, (end - first) / 1e3) for name, what, start, end in spans]
