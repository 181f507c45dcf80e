"""A ring allreduce by hand, and what it sends through: point-to-point sockets between ranks."""

import socket
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import numpy as np


class Sockets:
    """TCP connections from this rank to every other one on this machine.

    Parameters
    ----------
    rank, size : int
    gather : function
        Called with an object, it returns the list of all ranks' objects, in rank order
        (`hvd.allgather_object`).
    seconds : float
        A connection, a send or a wait for the next bytes that takes longer raises TimeoutError.

    Attributes
    ----------
    sent, received : int
        Bytes.
    to : dict of int to socket
        The connection to each other rank.
    """

    def __init__(self, rank, size, gather, seconds=30):
        self.rank = rank
        self.size = size
        self.sent = 0
        self.received = 0
        self.to = {}
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1)  # it sends while this one receives
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
            # else small messages may wait 40 ms
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    @contextmanager
    def _in_time(self, problem):
        try:
            yield
        except TimeoutError:
            raise TimeoutError(f"{problem} within {self._seconds} s") from None

    def send(self, other, array):
        """Send a contiguous array to another rank.

        Raises
        ------
        TimeoutError
            If the other rank does not take it in time.
        """
        with self._in_time(f"rank {other} did not take {array.nbytes} bytes"):
            self.to[other].sendall(array)
        self.sent += array.nbytes

    def receive(self, other, array):
        """Fill a contiguous array with what another rank sends.

        Raises
        ------
        ConnectionError
            If the other rank has closed its end.
        TimeoutError
            If it sends too late.
        """
        rest = memoryview(array.view(np.uint8))
        while rest:
            with self._in_time(f"rank {other} did not send the last {len(rest)} bytes"):
                count = self.to[other].recv_into(rest)
            if not count:
                to_come = f"{len(rest)} bytes still to come"
                raise ConnectionError(f"rank {other} closed its end with {to_come}")
            rest = rest[count:]
        self.received += array.nbytes

    def exchange(self, right, out, left, into):
        """Send `out` to one rank and, at the same time, fill `into` from another.

        It raises what `send` and `receive` raise.
        """
        sending = self._thread.submit(self.send, right, out)
        try:
            self.receive(left, into)
        finally:
            wait([sending])
        sending.result()

    def close(self):
        """Close all connections; can be called twice."""
        for connection in self.to.values():
            connection.close()
        self._thread.shutdown()


def ring_allreduce(sockets, values, watch):
    """Add up an array over all ranks, in place: each sends only to its right neighbour.

    First the reduce-scatter: a part travels round and collects a sum on its way. Then the
    allgather: the finished parts travel round once more. Each rank sends 2 (size - 1) / size of
    the array.

    Parameters
    ----------
    sockets : Sockets
    values : array [n]
        n is a multiple of sockets.size.
    watch : list
        It gets a copy of `values` after each step.
    """
    rank, size = sockets.rank, sockets.size
    right, left = (rank + 1) % size, (rank - 1) % size
    parts = np.split(values, size)  # views: a change of a part changes `values`
    for step in range(size - 1):
        part = parts[(rank - step - 1) % size]
        got = np.empty_like(part)
        sockets.exchange(right, parts[(rank - step) % size], left, got)
        part += got
        watch.append(values.copy())
    for step in range(size - 1):
        full, next_full = (rank + 1 - step) % size, (rank - step) % size
        sockets.exchange(right, parts[full], left, parts[next_full])
        watch.append(values.copy())


def bare_ring(sockets, part):
    """Move the bytes of a ring allreduce of sockets.size parts, and add nothing.

    Parameters
    ----------
    sockets : Sockets
    part : array
        One part.
    """
    right = (sockets.rank + 1) % sockets.size
    left = (sockets.rank - 1) % sockets.size
    got = np.empty_like(part)
    for _ in range(2 * (sockets.size - 1)):
        sockets.exchange(right, part, left, got)
