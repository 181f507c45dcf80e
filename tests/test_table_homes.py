"""The harness of lesson 19: turns begin with each home in turn; bytes and calls are counted; all homes train alike."""

import math
import socket
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from shown import taken

from helpers.cluster import make_table
from lesson_parts import table_homes
from lesson_parts.table_homes import (
    count_bytes,
    draw_step,
    home_in_process,
    ms_of,
    spans_of_step,
    take_turns,
    timed,
    twenty,
    zipf_batch,
)


def test_each_turn_begins_with_another_way():
    called = []
    ways = {name: lambda name=name: called.append(name) or len(called) for name in "abc"}
    found = take_turns(ways, 2)
    assert called == [*"abc", *"bca"]
    assert found == {"a": [1, 6], "b": [2, 4], "c": [3, 5]}


def test_a_call_begins_when_the_last_rank_has_come():
    early = [("begins", 1.0), ("computes", 1.2), ("ids", 1.7), ("computes", 1.8)]
    late = [("begins", 1.0), ("computes", 1.5), ("ids", 1.6), ("computes", 1.8)]
    spans = spans_of_step([early, late])
    assert spans[0][:3] == [("computes", 1.0, 1.2), ("waits", 1.2, 1.5), ("ids", 1.5, 1.7)]
    assert spans[1][:3] == [("computes", 1.0, 1.5), ("waits", 1.5, 1.5), ("ids", 1.5, 1.6)]
    found = [ms_of(spans, what) for what in ("computes", "waits", "ids", "rows")]
    assert found == pytest.approx([500, 150, 150, 0])
    assert [text.get_text() for text in draw_step(spans).texts] == ["ids"]


def test_what_goes_over_the_loopback_interface_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()

        def send(size):
            client.sendall(bytes(size))
            accepted.recv(size, socket.MSG_WAITALL)

        with accepted:
            assert count_bytes(send, [200_000, 400_000]) >= 300_000


def test_the_process_trains_on_the_batches_of_all_ranks():
    seen = []

    def batch_of(number, rows):
        tf.py_function(lambda number: seen.append(int(number)), [number], [])
        return tf.zeros([4], tf.int32), tf.zeros([4])

    def make_top(dim):
        return tf.keras.Sequential([tf.keras.Input([dim]), tf.keras.layers.Dense(1)])

    run = home_in_process(make_top, batch_of, 10, 2, parts=2)
    seen.clear()  # what compiled it
    assert run(1) > 0
    assert sorted(seen) == list(range(40, 80))


def test_the_servers_step_and_the_step_that_the_lesson_shows_have_the_same_losses():
    keras_2 = SimpleNamespace(**{**vars(tf), "keras": tf_keras})
    lesson = taken("19", "make_top table_step plain_tape OwnedRows", tf=keras_2)
    here = tf.distribute.get_strategy()
    theirs = table_homes._step_on(here, lesson.make_top, lambda number, rows: zipf_batch(number, rows, 64), 100, 4)
    table = lesson.OwnedRows(make_table(here, (100, 4), -0.05, 0.05), tf.gather)
    ours = lesson.table_step(table, lesson.make_top(4), lesson.plain_tape)
    numbers = tf.range(20)
    expected = np.array([theirs(number) for number in numbers])
    assert expected[-1] < 0.98 * expected[0]
    assert np.allclose([ours(*zipf_batch(number, 100, 64)) for number in numbers], expected, rtol=1e-5, atol=0)


def test_a_batch_is_that_of_lesson_18():
    lesson = taken("18", "label zipf_batch", tf=tf, math=math, BATCH=64)
    for ours, theirs in zip(zipf_batch(5, 1000, 64), lesson.zipf_batch(1000)(5), strict=True):
        assert np.array_equal(ours, theirs)


def test_twenty_steps_are_one_function_from_the_batch_that_it_is_given():
    steps = twenty(lambda number: tf.cast(number, tf.float32), lambda number, rows: (number * rows,), 2)
    losses, seconds = timed(steps, 3)
    assert losses == [19, 59, 99]  # the means of 0, 2, ... 38, of 40, ... 78, and so on
    assert seconds > 0
