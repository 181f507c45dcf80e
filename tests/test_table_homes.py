"""The harness of lesson 19: turns begin with each home in turn; bytes are counted; all homes train alike."""

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
from lesson_parts.rotation import take_turns
from lesson_parts.table_homes import (
    apart_from_one,
    count_bytes,
    joined,
    paused,
    timed,
    twenty,
    two_batches,
    zipf_batch,
)


def test_each_turn_begins_with_another_way():
    called = []
    ways = {name: lambda name=name: called.append(name) or len(called) for name in "abc"}
    found = take_turns(ways, 2)
    assert called == [*"abc", *"bca"]
    assert found == {"a": [1, 6], "b": [2, 4], "c": [3, 5]}


def test_shards_are_joined_and_compared_with_one_process():
    table, dense = np.arange(20, dtype="float32").reshape(10, 2), [np.zeros(3), np.ones(2)]
    shards = [table[rank::3].copy() for rank in range(3)]  # of 4, 3 and 3 rows
    assert np.array_equal(joined(shards), table)
    shards[2][1] += 0.5
    of_ranks = [(shard, dense) for shard in shards[:2]] + [(shards[2], [dense[0], dense[1] + 2])]
    assert apart_from_one((table, dense), of_ranks) == (0.5, 2)


def test_idle_processes_stop_while_another_home_is_measured():
    said = []
    process = SimpleNamespace(suspend=lambda: said.append("stops"), resume=lambda: said.append("goes on"))
    assert paused([process], lambda: said.append("measures") or 3)() == 3
    with pytest.raises(ZeroDivisionError):
        paused([process], lambda: 1 / 0)()
    assert said == ["stops", "measures", "goes on", "stops", "goes on"]


def test_what_goes_over_the_loopback_interface_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()

        def send(size):
            client.sendall(bytes(size))
            accepted.recv(size, socket.MSG_WAITALL)

        with accepted:
            assert count_bytes(send, [200_000, 400_000]) >= 300_000


def test_the_process_trains_on_the_batches_of_both_ranks():
    for both, first, second in zip(two_batches(3, 1000), zipf_batch(6, 1000), zipf_batch(7, 1000), strict=True):
        assert np.array_equal(both, np.concatenate([first, second]))


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
