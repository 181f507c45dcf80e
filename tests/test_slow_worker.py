"""What lesson 17 measures of a slow worker."""

import time
from contextlib import contextmanager
from functools import partial

import numpy as np

from lesson_parts.slow_worker import (
    Workers,
    at_each_pause,
    batches_of_each,
    costs_table,
    during,
    healthy_turns,
    kept_in_pauses,
    last_loss,
    pauses_table,
    pushes_between,
    rates_table,
    shares_left,
    summary,
    throughputs,
    typical_turn,
    with_brakes,
)

TURNS = [("healthy", 0, 1), ("slow", 1, 2), ("healthy", 2, 3), ("slow", 3, 4)]
# Worker 0 does ten batches a second, always; worker 1 ten in a healthy second, and two in a slow one.
ENDS = [(second + (place + 0.5) / 10, 0) for second in range(4) for place in range(10)]
ENDS += [(second + (place + 0.5) / n, 1) for second, n in enumerate([10, 2, 10, 2]) for place in range(n)]
LOG = np.array([[when, who, 4.0, 0] for when, who in ENDS])


def test_throughputs_and_shares():
    found = throughputs(LOG, TURNS, pairs=3)
    assert list(found["healthy"]) == [60]  # the first and the last turn are not whole
    assert list(found["slow"]) == [36]
    assert np.allclose(shares_left(LOG, TURNS), 0.6)
    assert len(during(LOG, TURNS, "slow")) == 24
    assert list(batches_of_each(LOG, TURNS, "slow")) == [20, 4]


def test_what_worker_0_keeps_of_its_pace_in_the_pauses():
    turns = [*TURNS, ("pause", 1, 1.2), ("pause", 1.5, 1.8)]
    assert np.allclose(kept_in_pauses(LOG, turns), [1])  # five batches in half a second
    gone = LOG[(LOG[:, 1] == 1) | (LOG[:, 0] < 1.5) | (LOG[:, 0] > 1.8)]
    assert np.allclose(kept_in_pauses(gone, turns), [0.4])
    assert throughputs(LOG, turns, pairs=3).keys() == {"healthy", "slow"}


def with_pulls():
    """LOG with the time of each pull, a fifth column: 0.04 s before the end."""
    return np.column_stack([LOG, LOG[:, 0] - 0.04])


def test_a_pause_makes_the_next_push_of_worker_1_late_or_not():
    turns = [*TURNS, ("pause", 1, 1.2), ("pause", 1.5, 1.7), ("pause", 3.8, 4)]
    log = with_pulls()
    second = (log[:, 1] == 1) & (log[:, 0] > 1.7) & (log[:, 0] < 2)  # the second batch of its slow turn
    log[second, 3:] = 3, 1.4
    assert at_each_pause(log, turns).tolist() == [[2, 2], [0, 1], [0, 3]]  # the last pause is not amid the training
    assert at_each_pause(log, TURNS).shape == (3, 0)
    assert pauses_table(log, turns).data.split("\n")[2:] == [
        "| between pull and push | 1 | 2 (2 to 2) | 3 (3 to 3) |",
        "| elsewhere | 1 | 2 (2 to 2) | 0 (0 to 0) |",
    ]
    assert pauses_table(log, TURNS).data.split("\n")[2:] == [
        "| between pull and push | 0 |  |  |",
        "| elsewhere | 0 |  |  |",
    ]


def test_pushes_between_a_pull_and_its_push_are_those_of_others():
    rows = [[1.0, 0, 4, 0, 0.5], [2.0, 0, 4, 0, 1.1], [3.0, 0, 4, 1, 2.1], [2.5, 1, 4, 2, 0.6]]
    assert pushes_between(np.array(rows)).tolist() == [0, 0, 1, 2]


def test_a_run_without_a_brake_is_cut_into_healthy_turns():
    turns = healthy_turns(LOG, 1)  # it lasts from 0.05 to 3.95
    assert [name for name, *_ in turns] == ["healthy"] * 3
    assert np.allclose([span for _, *span in turns], [[0.05, 1.05], [1.05, 2.05], [2.05, 3.05]])
    assert len(summary(LOG, turns, 1, 10)["healthy"]) == 3
    assert healthy_turns(LOG, 10) == []


def test_a_line_for_each_way():
    costs = {"ranks": summary(LOG, TURNS, 3000, 10), "serial": summary(LOG, [], 3000, 10)}
    lines = costs_table(costs, {"ranks": "20%", "serial": ""}).data.split("\n")
    assert lines[2:] == [
        "| ranks | 60% | 20% | 0 | 4.000 |",
        "| serial |  |  | 0 | 4.000 |",
    ]


def test_a_line_for_each_delay():
    ends = {"serial": [2.0, 4.0], "1 late": [2.5, np.nan], "5 late": [np.nan]}
    assert rates_table([20.0, 40.0], ends, 3.0).data.split("\n")[2:] == [
        "| serial | 2.00 | fails |",
        "| 1 late | 2.50 | fails |",
        "| 5 late | fails |  |",
    ]


def test_the_typical_turn_is_amid_the_training_and_worker_0_has_its_median_pace_in_the_pauses():
    turns = [("slow", 0, 1), ("slow", 0.4, 0.9), ("slow", 1.2, 1.9), ("slow", 2.1, 2.4), ("slow", 3, 4)]
    turns += [("pause", 0.5, 0.8), ("pause", 1.3, 1.6), ("pause", 2.1, 2.4)]
    still = (LOG[:, 1] == 0) & (LOG[:, 0] > 1.3) & (LOG[:, 0] < 1.5)  # two of three batches in the second pause
    none = (LOG[:, 1] == 0) & (LOG[:, 0] > 2.1) & (LOG[:, 0] < 2.4)
    assert typical_turn(LOG[~still & ~none], turns) == (1.2, 1.9)
    assert typical_turn(LOG, turns[:5]) == (0.4, 0.9)  # without a pause the first of them


def test_a_summary_leaves_out_what_was_dropped():
    dropped = LOG.copy()
    dropped[-2:, 3] = -1  # the two of worker 1 in the last slow turn, which is no whole one
    assert summary(dropped, TURNS, 3, 10) == {"healthy": 60, "slow": 36, "stalest": 0, "loss": 4}
    dropped[-4:, 3] = -1  # two more, in the healthy turn before
    assert summary(dropped, TURNS, 1, 10)["healthy"] == 18
    assert "slow" not in summary(LOG, [("healthy", 0, 4)], 1, 10)


def test_a_batch_may_have_a_step_of_its_own():
    class Coordinator:
        def schedule(self, step, arguments):
            return step, int(arguments[0])

    workers = Workers.__new__(Workers)
    workers.coordinator, workers.numbers, workers.batches = Coordinator(), None, (np.arange(3), np.arange(3))
    steps = {1: "long", "others": "short"}
    assert [workers.submit(steps, batch, 0.0) for batch in range(3)] == [("short", 0), ("long", 1), ("short", 2)]
    assert workers.submit("short", 1, 0.0) == ("short", 1)


def test_the_last_loss_is_that_of_the_batches_that_ended_last():
    log = np.array([[3.0, 0, 1.0, 0], [1.0, 0, 9.0, 0], [2.0, 1, 2.0, 0]])
    assert last_loss(log, 2) == 1.5


def test_brakes_come_and_go_and_the_pauses_follow_their_turn():
    applied, on = [], set()

    @contextmanager
    def brake(name):
        pauses = []
        applied.append(name)
        on.add(name)
        yield pauses
        on.remove(name)
        pauses.append((1.0, 2.0))  # known when it ends

    slow = partial(brake, "slow")
    found, turns = with_brakes(lambda: time.sleep(0.1) or "done", slow, seconds=0.01)
    assert [name for name, *_ in turns[:6]] == ["healthy", "slow", "pause"] * 2 and set(applied) == {"slow"}
    assert found == "done" and not on
    assert turns[2] == ("pause", 1.0, 2.0) and all(begin <= end for _, begin, end in turns)
