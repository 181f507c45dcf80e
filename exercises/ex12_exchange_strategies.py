"""Exercises of 12_exchange_strategies."""

import math

from exercises import Case, Exercise, Mistake


def not_rounded(alone, beside, exchange):
    return exchange / (2 * alone - beside)


def rounded_down(alone, beside, exchange):
    return int(not_rounded(alone, beside, exchange))


def nothing_beside(alone, beside, exchange):
    return math.floor(exchange / alone) + 1


def one_batch(alone, beside, exchange):
    return math.floor(exchange / (beside - alone)) + 1


def as_fast(alone, beside, exchange):
    return math.ceil(not_rounded(alone, beside, exchange))


def any_budget(alone, beside, exchange):
    return math.floor(not_rounded(alone, beside, exchange)) + 1


def at_least_one(alone, beside, exchange):
    return max(1, any_budget(alone, beside, exchange))


interval = Exercise(
    cases=[
        Case(
            args=(4, 6.5, 10),
            answer=7,
            mistakes=[
                Mistake(not_rounded, "a number of steps is whole; take the next one"),
                Mistake(rounded_down, "6 steps have a budget of 9 ms, and the exchange takes 10; take the next number"),
                Mistake(
                    nothing_beside,
                    "a step beside the other rank takes 6.5 ms, not 4: so a step saves 2 x 4 - 6.5 ms, not 4",
                ),
                Mistake(
                    one_batch,
                    "6.5 - 4 ms is what a step loses beside the other rank; two ranks train two batches in it",
                ),
            ],
        ),
        Case(
            args=(2, 3, 5),
            answer=6,
            mistakes=[
                Mistake(as_fast, "with 5 steps two ranks are just as fast as one; a second rank pays from 6 steps on"),
            ],
            hint="6 steps take two ranks 6 x 3 + 5 = 23 ms, and one rank 6 x 2 x 2 = 24; you have {answer}",
        ),
        Case(
            args=(1, 2.25, 0.5),
            answer=None,
            mistakes=[
                Mistake(any_budget, "-1 steps? The budget is below 0, so no number of steps is enough: None"),
                Mistake(at_least_one, "the budget is below 0, so no number of steps is enough, nor is 1: None"),
            ],
        ),
        Case(args=(1, 2, 0.5), answer=None),
        Case(
            args=(4, 5, 1),
            answer=1,
            hint="an exchange of 1 ms is less than the budget of one step, 3 ms; you have {answer}",
        ),
    ],
    hint="n steps take one rank 2 x 4 n ms, and two ranks 6.5 n + 10: for 7 that is 56 and 55.5; you have {answer}",
)
