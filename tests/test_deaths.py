"""What lesson 20 needs beside its subject."""

import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from lesson_parts.deaths import (
    Moments,
    joined,
    kill_when,
    last_authors,
    longest_gaps,
    parts_of_wait,
    stand_still,
    wait_for,
    with_gaps,
)
from lesson_parts.table_files import TableFiles


def test_a_process_stands_still_between_the_two_moments_and_goes_on():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        process = psutil.Process(child.pid)
        found = []
        pausing = threading.Thread(target=lambda: found.append(stand_still(child.pid, 0.5)))
        pausing.start()
        wait_for(lambda: process.status() == psutil.STATUS_STOPPED, 30)
        pausing.join()
        wait_for(lambda: process.status() != psutil.STATUS_STOPPED, 30)
        child.kill()
    ((begin, end),) = found
    assert end - begin >= 0.5 and end < time.time()


def test_waiting_ends():
    answers = iter([False, False, True])
    wait_for(lambda: next(answers))
    with pytest.raises(AssertionError, match="did not happen"):
        wait_for(lambda: False, 0.05)


def test_processes_are_killed_when_it_is_time():
    before = time.time()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        moment = kill_when(lambda: True, child.pid).result(30)
        assert child.wait(30) == -signal.SIGKILL
    assert before < moment < time.time()


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
