"""The harness of lesson 19: turns begin with each home in turn; bytes are counted; a process trains on all parts."""

import socket

import tensorflow as tf

from lesson_parts.table_homes import count_bytes, home_in_process, take_turns


def test_each_turn_begins_with_another_way():
    called = []
    ways = {name: lambda name=name: called.append(name) or len(called) for name in "abc"}
    found = take_turns(ways, 2)
    assert called == [*"abc", *"bca"]
    assert found == {"a": [1, 6], "b": [2, 4], "c": [3, 5]}


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
    assert sorted(seen) == list(range(100, 200))
