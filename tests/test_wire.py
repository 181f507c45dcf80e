"""Sockets that count bytes, the fitted line, the timeline."""

import json
import threading

import numpy as np
import pytest

from helpers.exchange.cost_model import fit_line, median_seconds, ring_bytes
from helpers.exchange.sockets import Sockets, tcp_seconds, timeline_spans


def on_ranks(size, work):
    """work(wires) on `size` threads, each with its own Wires; the results in rank order."""
    ports, everyone, results = {}, threading.Barrier(size), [None] * size

    def one(rank):
        def gather(port):
            ports[rank] = port
            everyone.wait(10)
            return [ports[other] for other in range(size)]

        wires = Sockets(rank, size, gather)
        results[rank] = work(wires)
        wires.close()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return results


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 500_000])
def test_arrays_go_round_the_ring_and_are_counted(size, length):
    def pass_on(wires):
        got = np.empty(length, np.float32)
        mine = np.full(length, wires.rank, np.float32)
        wires.exchange((wires.rank + 1) % size, mine, (wires.rank - 1) % size, got)
        return got, wires.sent, wires.received

    for rank, (got, sent, received) in enumerate(on_ranks(size, pass_on)):
        assert (got == (rank - 1) % size).all()
        assert sent == received == 4 * length


def test_the_bare_ring_moves_the_bytes_of_the_formula():
    def measure(wires):
        return tcp_seconds(wires, 4096, repeats=3), wires.sent

    for seconds, sent in on_ranks(4, measure):
        assert seconds > 0
        assert sent == 4 * ring_bytes(4, 4096)  # one call that does not count, and three


def test_a_closed_wire_is_an_error():
    def work(wires):
        if wires.rank == 1:
            return None
        with pytest.raises(ConnectionError, match="rank 1 closed its end with 8 bytes still to come"):
            wires.receive(1, np.empty(2, np.float32))
        return "said so"

    assert on_ranks(2, work) == ["said so", None]


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
    assert timeline_spans(path) == [("loss", "GLOO_ALLREDUCE", 1.0, 2.0), ("loss", "ALLREDUCE", 0.0, 4.0)]


def test_an_empty_timeline_has_no_spans(tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text("[\n]")
    assert timeline_spans(path) == []
