"""A ring by hand on sockets that count bytes and give up in time; the timeline that 08 draws."""

import json
import socket
import threading

import numpy as np
import pytest

from helpers.exchange.cost_model import ring_bytes
from lesson_parts.ring import Sockets, bare_ring, ring_allreduce
from lesson_parts.ring_pictures import spans_of_steps, timeline_spans


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
def test_the_ring_adds_up_and_sends_the_bytes_of_the_formula_as_the_bare_one_does(size):
    rows = np.random.default_rng(size).normal(size=(size, 12 * size)).astype(np.float32)

    def add_up(sockets):
        values, watch = rows[sockets.rank].copy(), []
        ring_allreduce(sockets, values, watch)
        sent, sockets.sent = sockets.sent, 0
        bare_ring(sockets, values[:12])
        return values, watch, sent, sockets.sent

    for rank, (values, watch, sent, bare) in enumerate(on_ranks(size, add_up)):
        np.testing.assert_allclose(values, rows.sum(axis=0), atol=1e-5)
        assert sent == bare == ring_bytes(size, values.nbytes) and len(watch) == 2 * (size - 1)
        complete = np.split(np.isclose(watch[size - 2], rows.sum(axis=0), atol=1e-5), size)
        assert complete[(rank + 1) % size].all()  # half way: one part


@pytest.mark.parametrize(
    ("one", "other", "seconds", "kind", "says"),
    [
        ("receive", "close", 30, ConnectionError, "rank 1 closed its end with 8 bytes still to come"),
        ("receive", "nothing", 0.2, TimeoutError, "rank 1 did not send the last 8 bytes within 0.2 s"),
        ("send", "nothing", 0.2, TimeoutError, "rank 1 did not take 80000000 bytes within 0.2 s"),
    ],
)
def test_what_the_other_rank_does_not_do_is_an_error_in_time(one, other, seconds, kind, says):
    array = np.zeros(10_000_000 if one == "send" else 1)

    def work(sockets):
        if sockets.rank == 0:
            getattr(sockets, one)(1, array)
        elif other == "close":
            sockets.close()

    error, _ = on_ranks(2, work, seconds=seconds)
    assert isinstance(error, kind) and says in str(error)


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
    path.write_text("[\n]")
    assert timeline_spans(path) == []


def test_of_a_timeline_some_steps_are_chosen():
    """In step n each of two tensors waits from 10n on, travels from 10n + 2 to 10n + 4, and is copied out."""
    spans = []
    for step in range(4):
        for tensor, late in (("a", 0), ("b", 2)):
            begin = 10 * step + late
            spans += [[tensor, "negotiation", begin, begin + 2], [tensor, "transfer", begin + 2, begin + 4]]
            spans.append([tensor, "copying out", begin + 4, begin + 5])
    assert spans_of_steps(spans, 1, 4) == spans
    assert spans_of_steps(spans, 2, 3) == spans[6:18]
