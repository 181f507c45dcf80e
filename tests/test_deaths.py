"""What lesson 20 needs beside its subject. It kills and stops processes itself."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from shown import taken

from lesson_parts.deaths import (
    Moments,
    joined,
    last_authors,
    longest_gaps,
    parts_of_wait,
    wait_for,
    with_gaps,
)
from lesson_parts.table_files import TableFiles


def test_waiting_ends():
    answers = iter([False, False, True])
    wait_for(lambda: next(answers))
    with pytest.raises(AssertionError, match="did not happen"):
        wait_for(lambda: False, 0.05)


def test_the_time_in_which_one_reads_is_no_wait():
    faults = Moments()
    faults.note("a rank", "death", 1.0)
    faults.note("a rank", "of old")
    for what, when in {"death": 10.0, "error": 11.0, "again": 100.0, "ready": 103.0}.items():
        faults.note("a rank", what, when)
    moments = faults["a rank"]
    assert list(moments) == ["death", "error", "again", "ready"]
    after = [(104.0, 0), (105.0, 0)]
    log = joined(np.array([[9.0, 0], [9.5, 1]]), after, moments)
    waits = parts_of_wait(after, moments)
    assert log[:, 0].tolist() == [9, 9.5, 15, 16]
    assert waits == {"until the error": 1, "restart": 3, "until the first step": 1}
    assert longest_gaps(log, moments["death"]) == (0.5, sum(waits.values()))
    assert np.isnan(longest_gaps(log[2:], moments["death"])[0])  # whose log died, too
    assert last_authors(log, 2) == {0} and last_authors(log, 3) == {0, 1}
    rows = with_gaps([["a rank", "0"]], {"a rank": log}, faults)
    assert rows == [["a rank", "0", "0.50 s", "5.00 s"]]


def test_the_newest_tables_come_back(tmp_path):
    files = TableFiles(tmp_path)
    for number in (50, 100):
        tables = [SimpleNamespace(numpy=lambda of=of, number=number: np.full(of, number)) for of in (1, 2)]
        files.save("a rank", number, tables)
    number, tables = files.newest("a rank")
    assert number == 100 and [each.tolist() for each in tables] == [[100], [100, 100]]
    files.forget("a rank")
    assert list(tmp_path.iterdir()) == []


def test_each_thread_of_lesson_20_steps_with_its_own_batches():
    class Model:
        def __init__(self):
            self.seen = {0: [], 1: []}

        def step(self, thread, batch, lr):
            self.seen[thread].append((batch, lr))

    model = Model()
    threads = taken("20", "work run_threads", ThreadPoolExecutor=ThreadPoolExecutor, LR=0.5)
    futures = threads.run_threads(model, [0, 2], [1])
    assert [future.result() for future in futures] == [None, None]
    assert model.seen == {0: [(0, 0.5), (2, 0.5)], 1: [(1, 0.5)]}
