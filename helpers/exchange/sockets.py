"""Bytes between ranks: sockets that count them, seconds against bytes with a fitted line, and Horovod's timeline."""

import json
import socket
import threading

import numpy as np

from helpers.exchange.cost_model import allreduce_seconds, median_seconds


class Sockets:
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

    wires = Sockets(hvd.rank(), hvd.size(), hvd.allgather_object)
    seconds = allreduce_seconds(n_bytes, repeats), tcp_seconds(wires, n_bytes, repeats)
    wires.close()
    return seconds


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
