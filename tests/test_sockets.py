"""Sockets that count bytes and give up in time; the fitted line; the timeline that 04 draws."""

import json
import socket
import threading
from pathlib import Path

import nbformat
import numpy as np
import pytest

from benchmarks.allreduce import bare_ring
from helpers.exchange.cost_model import fit_line, median_seconds, ring_bytes
from helpers.exchange.sockets import Sockets


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


def test_ring_bytes():
    assert ring_bytes(2, 100) == 100
    assert ring_bytes(4, 100) == 150


def test_median_seconds_counts_calls():
    calls = []
    assert median_seconds(lambda: calls.append(0), 5) >= 0
    assert len(calls) == 6


def test_fit_finds_latency_and_bandwidth():
    sizes = np.array([1e3, 1e4, 1e5, 1e6, 1e7])
    latency, bandwidth, error = fit_line(sizes, 2e-3 + sizes / 5e8)
    assert latency == pytest.approx(2e-3) and bandwidth == pytest.approx(5e8) and error < 1e-6


def test_fit_is_relative():
    """A 10 % error of one small and one large message weighs the same."""
    sizes = np.array([1e3, 1e3, 1e9, 1e9])
    seconds = np.array([0.9e-3, 1.1e-3, 0.9, 1.1])
    latency, bandwidth, error = fit_line(sizes, seconds)
    assert latency == pytest.approx(1e-3, rel=0.03) and bandwidth == pytest.approx(1e9, rel=0.03)
    assert error == pytest.approx(0.1, rel=0.1)


def test_fit_is_never_negative():
    latency, _, error = fit_line([1e6, 2e6, 4e6], [1e-3, 3e-3, 8e-3])
    assert latency == 0 and error > 0.1


@pytest.fixture(scope="module")
def timeline_spans():
    """The function of that name, out of the cell of notebook 04 that defines it."""
    path = Path(__file__).resolve().parent.parent / "notebooks" / "04_collectives.ipynb"
    sources = [cell.source for cell in nbformat.read(path, 4).cells]
    names = {"json": json, "Path": Path}
    exec(next(source for source in sources if source.startswith("def timeline_spans")), names)
    return names["timeline_spans"]


@pytest.mark.parametrize("end", ["]", ",\n", ""])
def test_timeline_spans_nest(timeline_spans, tmp_path, end):
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


def test_an_empty_timeline_has_no_spans(timeline_spans, tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text("[\n]")
    assert timeline_spans(path) == []
