"""Exercises of 12_exchange_strategies."""

import math

from exercises import Case, Exercise, Mistake


def share_of_the_computing(compute, communicate, share):
    return max(1, math.ceil(communicate / share / compute))


def rounded_down(compute, communicate, share):
    return int(communicate * (1 - share) / share / compute)


def not_rounded(compute, communicate, share):
    return communicate * (1 - share) / share / compute


def share_of_a_half(compute, communicate, share):
    return max(1, math.ceil(communicate / compute))


interval = Exercise(
    cases=[
        Case(
            args=(0.002, 0.0499, 0.2),
            answer=100,
            mistakes=[
                Mistake(
                    share_of_the_computing,
                    "125 steps compute 0.25 s, so that communicating is 0.2 of the computing; it "
                    "may be 0.2 of all the time",
                ),
                Mistake(rounded_down, "99.8 steps are needed, so 99 are too few, round up"),
                Mistake(not_rounded, "a number of steps is whole; round up"),
                Mistake(
                    share_of_a_half,
                    "25 steps compute as long as the exchange takes; that is a share of 0.5",
                ),
            ],
            hint="100 steps of 2 ms compute 200 ms, and 49.9 ms of communicating are 0.2 of 249.9 "
            "ms; you have {answer}",
        ),
        Case(
            args=(0.003, 0.05, 0.2),
            answer=67,
            hint="66.7 steps are needed of 3 ms each, so 67; you have {answer}",
        ),
        Case(
            args=(1.0, 0.001, 0.5),
            answer=1,
            hint="a rank takes at least 1 step between two exchanges; you have {answer}",
        ),
    ],
    hint="the computing between two exchanges must take (1 - share) / share times as long as one; you have {answer}",
)
