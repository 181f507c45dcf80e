"""Lesson 23: the check of a guess, and the check of ranks."""

import pytest

from lesson_parts.first_host import compare, losses_of_two_hosts, missing_in

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


@pytest.mark.parametrize(
    ("hosts", "missing"),
    [
        ("", "fill in"),
        ("host1:1, host0:3", "without spaces"),
        ("host1,host0", "without spaces"),
        ("host1:1,host0:2", "3 slots"),
        ("host1:1,host0:3", ""),
    ],
)
def test_what_horovodrun_could_not_start_gets_a_hint(hosts, missing):
    found = missing_in(hosts, RIGHT)
    assert missing in found and bool(found) == bool(missing)
    assert missing_in("host1:1,host0:3", []) == "not yet: fill in HOSTS and GUESS"


def test_ranks_on_one_host_are_noticed():
    ranks = [{"rank": i, "size": 2, "local": 0, "cross": i, "host": f"host{i}", "losses": [2.0]} for i in range(2)]
    assert losses_of_two_hosts(ranks) == [2.0]
    for wrong in ({"host": "host0"}, {"cross": 0}, {"local": 1}, {"rank": 0}):
        with pytest.raises(AssertionError):
            losses_of_two_hosts([ranks[0], {**ranks[1], **wrong}])
