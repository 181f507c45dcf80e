"""Exercises of 12_exchange_strategies."""

import math

import numpy as np

from exercises import ANYTHING, Case, Exercise, Mistake


def last_of_each(rows, values):
    different = np.unique(rows)
    return different, [values[rows == row][-1] for row in different]


def first_of_each(rows, values):
    different, place = np.unique(rows, return_index=True)
    return different, values[place]


def mean_of_each(rows, values):
    different = np.unique(rows)
    return different, [values[rows == row].mean(axis=0) for row in different]


merge_rows = Exercise(
    cases=[
        Case(
            args=(
                np.array([7, 2, 7, 4]),
                np.array([[1.0, 0.0], [2.0, 2.0], [4.0, 1.0], [0.0, 3.0]]),
            ),
            answer=([2, 4, 7], [[2, 2], [0, 3], [5, 1]]),
            mistakes=[
                Mistake(
                    last_of_each,
                    "row 7 comes twice, as [1, 0] and [4, 1]; the second overwrites the first, "
                    "where they should be added",
                ),
                Mistake(
                    first_of_each,
                    "row 7 comes twice, as [1, 0] and [4, 1]; the second is lost, where they "
                    "should be added",
                ),
                Mistake(
                    lambda rows, values: (list(dict.fromkeys(rows)), ANYTHING),
                    "the sums are of rows 7, 2, 4; give them in rising order, 2, 4, 7",
                ),
                Mistake(
                    lambda rows, values: (np.sort(rows), ANYTHING),
                    "row 7 is still there twice; each row comes once, with the sum of its values",
                ),
                Mistake(mean_of_each, "the values of a row are added up, not averaged"),
            ],
        ),
    ],
    hint="rows 7, 2, 7, 4 give 2, 4, 7 with [2, 2], [0, 3], [5, 1]; you have {answer}",
)


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
    hint="the computing between two exchanges must take (1 - share) / share times as long as one; "
    "you have {answer}",
)
