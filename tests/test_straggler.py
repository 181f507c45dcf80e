"""A process that is slowed runs less, and runs again afterwards, whatever ended the slowing."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from helpers.cluster.processes import slowed


@pytest.fixture
def spinning():
    """A process that computes all the time."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield psutil.Process(child.pid)
    child.kill()
    child.wait()


def computed(process, seconds):
    """The share of the next `seconds` in which the process had a core."""
    before, started = process.cpu_times().user, time.monotonic()
    time.sleep(seconds)
    return (process.cpu_times().user - before) / (time.monotonic() - started)


def awake(process, seconds=5):
    deadline = time.monotonic() + seconds
    while computed(process, 0.2) == 0 and time.monotonic() < deadline:
        pass
    return process.status() != psutil.STATUS_STOPPED


def test_a_process_gets_its_fifth_and_then_runs_on(spinning):
    with slowed(spinning.pid, 5):
        share = computed(spinning, 1.5)
    assert 0 < share < 0.35
    assert awake(spinning)


def test_it_runs_on_after_an_error_in_the_block(spinning):
    with pytest.raises(RuntimeError, match="in the block"), slowed(spinning.pid, 20):
        raise RuntimeError("in the block")
    assert awake(spinning)


def test_it_runs_on_after_the_slowing_process_was_killed(spinning):
    code = f"import time\nfrom helpers.cluster import slowed\nwith slowed({spinning.pid}, 50):\n"
    code += "    print('slow', flush=True)\n    time.sleep(60)"
    slower = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert slower.stdout.readline() == b"slow\n"
    slower.send_signal(signal.SIGKILL)
    slower.communicate()
    assert awake(spinning)


def test_a_slowed_process_may_be_killed(spinning):
    with slowed(spinning.pid, 5):
        spinning.kill()
        time.sleep(0.2)


def test_wrong_arguments_are_one_sentence(spinning):
    with pytest.raises(ValueError, match="times=1: a process is slowed by a factor above 1"), slowed(spinning.pid, 1):
        pass
    with pytest.raises(ValueError, match="this process, which could not wake itself"), slowed(os.getpid(), 5):
        pass
    with pytest.raises(ValueError, match="pid=99999999 is no process of this machine"), slowed(99999999, 5):
        pass
