"""Exercises of 17_stragglers."""

import math

from exercises import ANYTHING, Case, Exercise, Mistake


def asynchronous_first(slowdowns):
    return sum(1 / slow for slow in slowdowns) / len(slowdowns), 1 / max(slowdowns)


def divided_by_the_mean_time(slowdowns):
    return 1 / max(slowdowns), len(slowdowns) / sum(slowdowns)


def throughputs_added_up(slowdowns):
    return 1 / max(slowdowns), sum(1 / slow for slow in slowdowns)


def nobody_waits(slowdowns):
    kept_of_all = sum(1 / slow for slow in slowdowns) / len(slowdowns)
    return kept_of_all, kept_of_all


kept = Exercise(
    cases=[
        Case(
            args=([1, 5],),
            answer=(0.2, 0.6),
            mistakes=[
                Mistake(
                    asynchronous_first,
                    "the other way round, first synchronous, then asynchronous",
                ),
                Mistake(
                    divided_by_the_mean_time,
                    "asynchronously the throughputs add up, 1 and 1/5 of two; "
                    "you divide by the mean time",
                ),
                Mistake(
                    throughputs_added_up,
                    "a whole worker and a fifth of one, out of two workers; divide by their number",
                ),
                Mistake(
                    lambda slowdowns: (max(slowdowns), ANYTHING),
                    "5 is how much longer it takes; the share that is left is 1/5",
                ),
                Mistake(nobody_waits, "synchronously all wait for the slowest worker in each step"),
            ],
        ),
        Case(
            args=([2, 1, 4, 4],),
            answer=(0.25, 0.5),
            hint="slowdowns of 2, 1, 4 and 4 leave 0.25 and 0.5; you have {answer}",
        ),
    ],
    hint="slowdowns of 1 and 5 leave 0.2 synchronously and (1 + 0.2) / 2 asynchronously; "
    "you have {answer}",
)


def share(delay):
    """The toy's highest rate, divided by that of fresh gradients."""
    return math.sin(math.pi / (2 * (2 * delay + 1)))


highest_rate = Exercise(
    cases=[
        Case(
            args=(1, 100),
            answer=50,
            mistakes=[
                Mistake(
                    lambda delay, serial: 2 * share(delay),
                    "the toy's own rate; what share of its rate with fresh gradients is that?",
                ),
                Mistake(
                    lambda delay, serial: 2 * share(delay) * serial,
                    "the toy bears 2 with fresh gradients, so divide its rate by 2",
                ),
            ],
            hint="one late halves the highest rate, 100 becomes 50; you have {answer}",
        ),
        Case(
            args=(5, 100),
            answer=100 * share(5),
            mistakes=[
                Mistake(
                    lambda delay, serial: serial / (delay + 1),
                    "that halves for one late, but five late leave a seventh, not a sixth",
                ),
            ],
            hint="five late leave a seventh, 100 becomes 14.2; you have {answer}",
        ),
        Case(args=(0, 80), answer=80, hint="a delay of 0 is serial training: 80; you have {answer}"),
    ],
    hint="the toy's rate for this delay, divided by the one for 0, times serial; you have {answer}",
)

kept_by_window = Exercise(
    cases=[
        Case(
            args=(1, 9, 4),
            answer=0.35,
            mistakes=[
                Mistake(
                    lambda quick, long, window: (2 * quick + 1 + min(window, long)) / (quick + long),
                    "the share of two healthy workers: they do 2 * (quick + long) batches meanwhile",
                ),
                Mistake(
                    lambda quick, long, window: (2 * quick + min(window, long)) / (2 * (quick + long)),
                    "the long batch of worker 1 counts, too",
                ),
                Mistake(
                    lambda quick, long, window: (1 + min(window, long)) / (2 * (quick + long)),
                    "count the quick batches of both workers, too",
                ),
            ],
            hint="worker 0 does 1 + 4 batches and worker 1 does 2, healthy they do 20; you have {answer}",
        ),
        Case(
            args=(1, 9, 100),
            answer=0.6,
            mistakes=[
                Mistake(
                    lambda quick, long, window: (2 * quick + 1 + window) / (2 * (quick + long)),
                    "a window of 100 never fills: worker 0 does 9 batches during the long one",
                ),
            ],
            hint="a window that never fills leaves 0.6, as if nobody waited; you have {answer}",
        ),
        Case(
            args=(3, 5, 3),
            answer=0.625,
            hint="worker 0 does 3 + 3 batches and worker 1 does 4, healthy they do 16; you have {answer}",
        ),
    ],
    hint="count the batches of both workers from one long batch to the next; you have {answer}",
)

staleness_of_each = Exercise(
    cases=[
        Case(
            args=([1, 1],),
            answer=[1, 1],
            mistakes=[
                Mistake(
                    lambda slowdowns: [
                        own * sum(1 / slow for slow in slowdowns) for own in slowdowns
                    ],
                    "a worker's own push does not make its gradient stale; "
                    "count those of the others",
                ),
            ],
            hint="two equal workers push in turn, so each gradient is one push old; "
            "you have {answer}",
        ),
        Case(
            args=([1, 5],),
            answer=[0.2, 5],
            mistakes=[
                Mistake(
                    lambda slowdowns: [
                        own * sum(1 / s for s in slowdowns) - 1 for own in slowdowns[::-1]
                    ],
                    "the slow worker is the one whose gradients are late",
                ),
                Mistake(
                    lambda slowdowns: slowdowns,
                    "the slowdown itself; worker 0 takes 1 unit, in which worker 1 "
                    "pushes only 1/5 times",
                ),
            ],
            hint="while worker 1 computes, 5 units, worker 0 pushes 5 times, and the other way "
            "round 1/5; you have {answer}",
        ),
        Case(
            args=([1, 2, 4],),
            answer=[0.75, 2.5, 6],
            hint="add up what all others push meanwhile; slowdowns of 1, 2 and 4 give 0.75, 2.5 "
            "and 6, not {answer}",
        ),
    ],
    hint="worker i takes slowdowns[i] units, and worker j pushes 1 / slowdowns[j] times a unit; "
    "you have {answer}",
)
