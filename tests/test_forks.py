"""helpers.cluster.forks: processes that begin with TensorFlow imported, and end with the one that asked for them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from waiting import wait_for

from helpers.cluster.forks import Forker, forker

wait_until = partial(wait_for, seconds=20)


def say(*words):
    """Runs in a forked process."""
    modules = "tensorflow" in sys.modules
    print(*words, modules, os.getcwd(), tempfile.gettempdir(), os.environ["SAID"], np.random.randint(2**31), sep="|")


def sleep():
    time.sleep(600)


def fail():
    raise TypeError("not this one")


def leave(code):
    os._exit(code)


@pytest.fixture
def fork(monkeypatch, tmp_path):
    """A function that forks one and gives its process, and its log."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # it imports the functions from this file
    own, logs = Forker(dict(os.environ)), iter(range(100))

    def fork(function, *arguments, **env):
        log = tmp_path / f"{next(logs)}.log"
        return own.fork(function, *arguments, env=env, log=log, timeout=60), log

    fork.forker = own
    yield fork
    own.stop()


def test_forked_processes_know_tensorflow_and_draw_numbers_of_their_own(fork, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs = [fork(say, "rank", number, SAID="hello")[1] for number in range(2)]
    wait_until(lambda: all(log.exists() and log.read_text().count("\n") for log in logs))
    said = [log.read_text().split("|") for log in logs]
    for number, words in enumerate(said):
        assert words[:-1] == ["rank", str(number), "True", str(tmp_path), str(fork.forker.directory), "hello"]
    assert said[0][-1] != said[1][-1]


def test_how_one_ended_is_known(fork):
    process, _ = fork(sleep)
    process.send_signal(signal.SIGKILL)
    assert fork.forker.exit_code(process.pid) == -signal.SIGKILL
    assert fork.forker.exit_code(fork(leave, 3)[0].pid) == 3
    process, log = fork(fail)
    assert fork.forker.exit_code(process.pid) == 1 and "TypeError: not this one" in log.read_text()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_all_end_with_the_one_that_forked_them(fork, end):
    processes = [fork(sleep)[0] for _ in range(2)]
    assert all(process.is_running() for process in processes)
    fork.forker.stop() if end == "stop" else fork.forker.process.kill()
    wait_until(lambda: not any(process.is_running() for process in processes))
    if end == "stop":
        assert not fork.forker.directory.exists()


def test_nothing_is_left_when_who_asked_is_killed_while_tensorflow_is_imported(tmp_path):
    program = "import time; from helpers.cluster.forks import forker; forker().fork(time.sleep, 600, env={}, log='"
    command = [sys.executable, "-c", f"{program}{tmp_path}/log', timeout=60)"]
    asks = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_until(lambda: list(tmp_path.glob("forks-*/start.log")))
    time.sleep(0.5)
    asks.kill()
    asks.wait()
    wait_for(lambda: not list(tmp_path.glob("forks-*")), 60)


def test_there_is_one_for_each_setting_that_tensorflow_reads_at_its_import():
    assert forker() is forker()
    assert forker({"HOROVOD_CYCLE_TIME": "2"}) is forker()
    other = forker({"TF_USE_LEGACY_KERAS": "1"})
    try:
        assert other is not forker()
    finally:
        other.stop()
    assert forker().process.poll() is None
