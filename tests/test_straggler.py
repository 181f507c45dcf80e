"""A process that is slowed runs less, evenly, and runs again afterwards, whatever ended the slowing."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from programs import said_by
from waiting import wait_for

from lesson_parts.straggler import slowed

pytestmark = pytest.mark.slow  # a minute of standing and running


@pytest.fixture
def spinning():
    """A process that computes all the time."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield psutil.Process(child.pid)
    child.kill()
    child.wait()


def computed(process, seconds):
    """For how long the process had a core in the next `seconds`."""
    before = process.cpu_times().user
    time.sleep(seconds)
    return process.cpu_times().user - before


def stood(pauses):
    """The seconds of all pauses together."""
    return sum(end - begin for begin, end in pauses)


def awake(process, seconds=5):
    deadline = time.monotonic() + seconds
    while computed(process, 0.2) == 0 and time.monotonic() < deadline:
        pass
    return process.status() != psutil.STATUS_STOPPED


def brake():
    """The process that slows another one."""
    return next(child for child in psutil.Process().children() if "lesson_parts.straggler" in child.cmdline())


def test_a_process_gets_its_fifth_and_runs_on_after_an_error_in_the_block(spinning):
    began = time.time()
    with pytest.raises(RuntimeError, match="in the block"), slowed(spinning.pid, 5) as pauses:
        time.sleep(1.5)
        wait_for(lambda: spinning.status() == psutil.STATUS_STOPPED, every=0.001)
        wait_for(lambda: spinning.status() != psutil.STATUS_STOPPED, every=0.001)
        raise RuntimeError("in the block")
    assert all(began <= begin <= end <= time.time() for begin, end in pauses)
    *whole, _ = pauses  # the last one was cut short
    elapsed = whole[-1][1] - whole[0][0]
    assert 0.6 * elapsed < stood(whole) < elapsed
    assert awake(spinning)


def test_a_busy_brake_computes_while_the_process_stands(spinning):
    for busy in (False, True):
        with slowed(spinning.pid, 5, run=0.02, busy=busy) as pauses:
            used = computed(brake(), 1)
        assert (used > 0.1 * stood(pauses)) == busy
    assert awake(spinning)


def test_it_stands_still_for_moments_unless_longer_ones_are_wanted(spinning):
    typical = {}
    for run in (0.001, 0.02):
        with slowed(spinning.pid, 5, run=run) as pauses:
            time.sleep(0.8)
        lengths = np.array([end - begin for begin, end in pauses])
        typical[run] = (lengths**2).sum() / lengths.sum()  # how long, seen at any moment of standing
    assert typical[0.001] < 0.6 * typical[0.02] and typical[0.02] > 0.03


def test_it_runs_on_after_the_slowing_process_was_killed(spinning):
    code = f"import time\nfrom lesson_parts.straggler import slowed\nwith slowed({spinning.pid}, 50):\n"
    code += "    print('slow', flush=True)\n    time.sleep(60)"
    slower = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert slower.stdout.readline() == b"slow\n"
    slower.send_signal(signal.SIGKILL)
    slower.communicate()
    assert awake(spinning)


def test_a_slowed_process_may_be_killed(spinning, capfd):
    with slowed(spinning.pid, 5):
        of_it = brake()
        spinning.kill()
        spinning.wait()
        of_it.wait(10)
    assert capfd.readouterr().err == ""


def test_another_process_with_the_same_id_is_left_alone(spinning, monkeypatch):
    monkeypatch.setattr(psutil.Process, "is_running", lambda process: False)  # what psutil finds by the start time
    with pytest.raises(ValueError, match="ended just now"), slowed(spinning.pid, 5):
        pass
    assert awake(spinning)


def test_the_brake_starts_without_tensorflow():
    said_by("import sys, lesson_parts.straggler; sys.exit('tensorflow' in sys.modules)")


def test_wrong_arguments_are_one_sentence(spinning):
    for wrong, sentence in {
        (spinning.pid, 1): "times=1, run=0.001: a process runs for a while and is slowed by a factor above 1",
        (spinning.pid, 5, 0): "times=5, run=0: a process runs for a while",
        (os.getpid(), 5): "this process, which could not wake itself",
        (99999999, 5): "pid=99999999 is no process of this machine",
    }.items():
        with pytest.raises(ValueError, match=sentence), slowed(*wrong):
            pass
