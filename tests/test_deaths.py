"""What lesson 20 needs beside its subject."""

import subprocess
import sys
import threading
import time

import psutil
import pytest

from lesson_parts.deaths import stand_still, wait_for


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
