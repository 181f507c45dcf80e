"""A ring by hand on sockets that count bytes and give up in time; the timeline that 08 draws."""

import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from shown import taken

from helpers.exchange.cost_model import ring_bytes
from lesson_parts.ring import Sockets, bare_ring, ring_allreduce

timeline_spans = taken("08", "timeline_spans", json=json, Path=Path).timeline_spans


def on_ranks(size, work, **options):
    """work(sockets) on `size` threads, each with its own Sockets; the results, or what they raised, in rank order."""
    ports, everyone, results = {}, threading.Barrier(size), [None] * size

    def one(rank):
        def gather(port):
            ports[rank] = port
            everyone.wait(10)
            return [ports[other] for other in range(size)]

        sockets = Sockets(rank, size, gather, **options)
        try:
            results[rank] = work(sockets)
        except Exception as error:
            results[rank] = error
        everyone.wait(10)
        sockets.close()

    threads = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return results


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 500_000])
def test_arrays_go_round_the_ring_and_are_counted(size, length):
    def pass_on(sockets):
        got = np.empty(length, np.float32)
        own = np.full(length, sockets.rank, np.float32)
        sockets.exchange((sockets.rank + 1) % size, own, (sockets.rank - 1) % size, got)
        return got, sockets.sent, sockets.received

    for rank, (got, sent, received) in enumerate(on_ranks(size, pass_on)):
        assert (got == (rank - 1) % size).all()
        assert sent == received == 4 * length


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_ring_adds_up_and_sends_the_bytes_of_the_formula(size):
    rows = np.random.default_rng(size).normal(size=(size, 12 * size)).astype(np.float32)

    def add_up(sockets):
        values, watch = rows[sockets.rank].copy(), []
        ring_allreduce(sockets, values, watch)
        return values, watch, sockets.sent

    for rank, (values, watch, sent) in enumerate(on_ranks(size, add_up)):
        np.testing.assert_allclose(values, rows.sum(axis=0), atol=1e-5)
        assert sent == ring_bytes(size, values.nbytes) and len(watch) == 2 * (size - 1)
        complete = np.split(np.isclose(watch[size - 2], rows.sum(axis=0), atol=1e-5), size)
        assert complete[(rank + 1) % size].all()  # half way: one part


def test_the_bare_ring_moves_the_bytes_of_the_formula():
    def measure(sockets):
        bare_ring(sockets, np.ones(256, np.float32))
        return sockets.sent

    assert on_ranks(4, measure) == [ring_bytes(4, 4096)] * 4


def test_a_closed_connection_is_an_error():
    def work(sockets):
        if sockets.rank == 1:
            return sockets.close()
        return sockets.receive(1, np.empty(2, np.float32))

    error, _ = on_ranks(2, work)
    assert isinstance(error, ConnectionError) and "rank 1 closed its end with 8 bytes still to come" in str(error)


def test_a_rank_that_sends_nothing_is_an_error_in_time():
    def work(sockets):
        return sockets.rank or sockets.receive(1, np.empty(2, np.float32))

    error, _ = on_ranks(2, work, seconds=0.2)
    assert isinstance(error, TimeoutError) and "rank 1 did not send the last 8 bytes within 0.2 s" in str(error)


def test_a_rank_that_takes_nothing_is_an_error_in_time():
    def work(sockets):
        return sockets.rank or sockets.send(1, np.zeros(10_000_000))

    error, _ = on_ranks(2, work, seconds=0.2)
    assert isinstance(error, TimeoutError) and "rank 1 did not take 80000000 bytes within 0.2 s" in str(error)


def test_a_rank_that_does_not_connect_is_an_error_in_time():
    with pytest.raises(TimeoutError, match=r"ranks \[1, 2\] did not connect within 0.2 s"):
        Sockets(0, 3, lambda port: [port] * 3, seconds=0.2)


def test_a_failed_send_in_the_thread_is_raised():
    """It was lost: the rank received, reported nothing, and counted no bytes."""

    def work(sockets):
        if sockets.rank == 1:
            return sockets.send(0, np.ones(2, np.float32))
        sockets.to[1].shutdown(socket.SHUT_WR)
        return sockets.exchange(1, np.ones(2, np.float32), 1, np.empty(2, np.float32))

    error, _ = on_ranks(2, work)
    assert isinstance(error, BrokenPipeError)


@pytest.mark.parametrize("end", ["]", ",\n", ""])
def test_timeline_spans_nest(tmp_path, end):
    events = [
        {"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1}},
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "loss"}},
        {"ph": "B", "name": "ALLREDUCE", "ts": 5000, "pid": 1},
        {"ph": "i", "name": "CYCLE_START", "ts": 5500, "s": "g"},
        {"ph": "B", "name": "GLOO_ALLREDUCE", "ts": 6000, "pid": 1},
        {"ph": "E", "ts": 7000, "pid": 1},
        {"ph": "E", "ts": 9000, "pid": 1, "args": {"dtype": "float32", "shape": "[1]"}},
    ]
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(events)[:-1] + end)
    assert timeline_spans(path) == [["loss", "GLOO_ALLREDUCE", 1.0, 2.0], ["loss", "ALLREDUCE", 0.0, 4.0]]


def test_an_empty_timeline_has_no_spans(tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text("[\n]")
    assert timeline_spans(path) == []
