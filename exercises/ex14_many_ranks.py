"""Exercises of 14_many_ranks."""

import math

from exercises import Case, Exercise, Mistake


def bound(words, lost, s):
    return (lost * s + words) / (words * (1 - lost))


def rounded_up(words, lost, s):
    return max(1, math.ceil(bound(words, lost, s)))


def without_own(words, lost, s):
    return max(1, math.floor(lost * s / (words * (1 - lost))))


def as_if_nothing_grew(words, lost, s):
    return max(1, math.floor((lost * s + words) / words))


most_ranks = Exercise(
    cases=[
        Case(
            args=(1.0, 0.5, 10.0),
            answer=12,
            mistakes=[
                Mistake(
                    without_own,
                    "10 comes from R instead of R - 1 in the formula: one rank alone loses nothing",
                ),
                Mistake(
                    as_if_nothing_grew,
                    "6 leaves out that R stands below the line, too: solve (R - 1) w = lost (s + R w)",
                ),
            ],
        ),
        Case(
            args=(3.0, 0.25, 10.0),
            answer=2,
            mistakes=[
                Mistake(rounded_up, "3 ranks lose 6 / 19 = 0.32, which is more than 0.25: round down"),
                Mistake(bound, "2.44 ranks do not exist; round down"),
            ],
            hint="2 ranks lose 3 / 16 = 0.19, 3 ranks 6 / 19 = 0.32; so 2, not {answer}",
        ),
        Case(
            args=(25_000, 1 / 3, 125_000),
            answer=4,
            hint="4 ranks lose 75,000 / 225,000, exactly a third; a rounding error before `floor` makes {answer} of it",
        ),
        Case(
            args=(100.0, 0.1, 1.0),
            answer=1,
            hint="2 ranks lose 100 / 201; so only 1 is left, not {answer}",
        ),
    ],
    hint="12 ranks lose 11 / 22, exactly a half; 13 lose 12 / 23; you have {answer}",
)
