"""Point-to-point sockets between ranks: what a ring allreduce by hand sends through."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np


class Sockets:
    """A TCP connection from this rank to every other one on this machine. Counts bytes sent and received.

    gather: called with an object, it returns the list of all ranks' objects, in rank order (`hvd.allgather_object`).
    seconds: a connection, a send or a wait for the next bytes that takes longer raises TimeoutError.
    """

    def __init__(self, rank, size, gather, seconds=30):
        self.rank, self.size, self.sent, self.received, self.to = rank, size, 0, 0, {}
        self._seconds = seconds
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(seconds)
            self._connect(listener, gather(listener.getsockname()[1]))

    def _connect(self, listener, ports):
        """Call the lower ranks, each with our rank as its first byte; the higher ones call us."""
        for other in range(self.rank):
            self.to[other] = socket.create_connection(("127.0.0.1", ports[other]), self._seconds)
            self.to[other].sendall(bytes([self.rank]))
        while missing := set(range(self.rank + 1, self.size)) - set(self.to):
            with self._in_time(f"ranks {sorted(missing)} did not connect"):
                connection, _ = listener.accept()
            connection.settimeout(self._seconds)
            self.to[connection.recv(1)[0]] = connection
        for connection in self.to.values():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)  # else small messages may wait 40 ms

    @contextmanager
    def _in_time(self, problem):
        try:
            yield
        except TimeoutError:
            raise TimeoutError(f"{problem} within {self._seconds} s") from None

    def send(self, other, array):
        """Send a contiguous array to another rank. TimeoutError if it does not take it in time."""
        with self._in_time(f"rank {other} did not take {array.nbytes} bytes"):
            self.to[other].sendall(array)
        self.sent += array.nbytes

    def receive(self, other, array):
        """Fill a contiguous array with what another rank sends. ConnectionError at its end, TimeoutError if late."""
        rest = memoryview(array.view(np.uint8))
        while rest:
            with self._in_time(f"rank {other} did not send the last {len(rest)} bytes"):
                count = self.to[other].recv_into(rest)
            if not count:
                raise ConnectionError(f"rank {other} closed its end with {len(rest)} bytes still to come")
            rest = rest[count:]
        self.received += array.nbytes

    def exchange(self, right, out, left, into):
        """Send `out` to one rank and, at the same time, fill `into` from another; raises what these raise."""
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(self.send, right, out)
            self.receive(left, into)
        sending.result()

    def close(self):
        """Close all connections; can be called twice."""
        for connection in self.to.values():
            connection.close()
