"""Lesson 23: the check of a guess, the check of ranks, and how its programs start without what they do not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lesson_parts.first_host import compare, lean, losses_of_two_hosts, typing_on

HOSTS = ["host1", "host0", "host0", "host0"]
RIGHT = [("host1", 0, 0), ("host0", 0, 1), ("host0", 1, 0), ("host0", 2, 0)]


def said(places):
    line = "[{}]<stdout>:{}: HOROVOD_CROSS_RANK={} HOROVOD_LOCAL_RANK={} HOROVOD_RANK={}"
    return [line.format(rank, host, cross, local, rank) for rank, (host, local, cross) in enumerate(places)]


def test_a_right_guess(capsys):
    assert compare(said(RIGHT), RIGHT, HOSTS)
    assert capsys.readouterr().out == "correct\n"


def test_hosts_in_the_wrong_order(capsys):
    places = [("host0", 0, 0), ("host0", 1, 0), ("host1", 0, 1), ("host1", 1, 1)]
    assert not compare(said(places), places, HOSTS)
    assert "rank 0 is on host0" in capsys.readouterr().out


def test_a_cross_rank_that_counts_all_hosts(capsys):
    guess = [*RIGHT[:2], ("host0", 1, 1), ("host0", 2, 1)]
    assert not compare(said(RIGHT), guess, HOSTS)
    assert "rank 2" in capsys.readouterr().out
    assert not compare(said(RIGHT), RIGHT[:3], HOSTS)


def test_nothing_said():
    assert not compare([], RIGHT, HOSTS)


def test_ranks_on_one_host_are_noticed():
    ranks = [{"rank": i, "size": 2, "local": 0, "cross": i, "host": f"host{i}", "losses": [2.0]} for i in range(2)]
    assert losses_of_two_hosts(ranks) == [2.0]
    for wrong in ({"host": "host0"}, {"cross": 0}, {"local": 1}, {"rank": 0}):
        with pytest.raises(AssertionError):
            losses_of_two_hosts([ranks[0], {**ranks[1], **wrong}])


def test_lean_finds_our_programs_and_no_matplotlib(tmp_path):
    (tmp_path / "ours.py").write_text("print('ours')")
    line = [sys.executable, "-c", "import ours, matplotlib"]
    done = subprocess.run(line, env={**os.environ, **lean(tmp_path)}, capture_output=True, text=True)
    assert done.stdout == "ours\n" and "ModuleNotFoundError: matplotlib" in done.stderr


def test_horovodrun_starts_ranks_without_importing_tensorflow(tmp_path):
    pytest.importorskip("horovod")
    typing_on(None, tmp_path, Path(__file__).parent, "no hosts")
    line = [tmp_path / "bin" / "horovodrun", "--gloo", "-np", "2", "-H", "localhost:2", "sh", "-c"]
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('tensorflow is imported')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([*line, "echo $HOROVOD_RANK"], env=env, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split()) == ["[0]<stdout>:0", "[1]<stdout>:1"], done.stderr
