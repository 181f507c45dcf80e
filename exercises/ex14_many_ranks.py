"""Exercises of 14_many_ranks."""

import numpy as np

from exercises import Case, Exercise, Mistake


def length(total):
    return (total**2).sum(axis=-1, keepdims=True)


def merged(total, squares):
    return total * np.minimum(1, squares / length(total))


def whole_if_not_alike(total, squares):
    return np.where(squares >= length(total), total, total / 4)


def whole_if_several(total, squares):
    return np.where(np.isclose(squares, length(total), rtol=0.001), total / 4, total)


def whole_if_equal(total, squares):
    return np.where(squares == length(total), total, total / 4)


whole_if_alone = Exercise(
    cases=[
        Case(
            args=(np.array([[3.0, 4.0], [3.0, 4.0], [1.0, 0.0]]), np.array([[25.0], [12.5], [9.0]])),
            answer=[[3, 4], [0.75, 1], [0.25, 0]],
            mistakes=[
                Mistake(lambda total, squares: total / 4, "row 0 is from one rank alone, 25 = 3² + 4²: keep it whole"),
                Mistake(lambda total, squares: total, "row 1 is from several ranks, 12.5 is not 25: take a quarter"),
                Mistake(merged, "that is `merge_changes`; in row 1, of several ranks, take a quarter of the sum"),
                Mistake(whole_if_not_alike, "in row 2 ranks have disagreed, 9 is more than 1: they are several, too"),
                Mistake(whole_if_several, "the other way round: whole where one rank alone has changed the row"),
            ],
        ),
        Case(
            args=(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[25.00001], [0.0]])),
            answer=[[3, 4], [0, 0]],
            mistakes=[
                Mistake(whole_if_equal, "25.00001 and 25 differ by rounding: allow a thousandth of the squared length"),
            ],
        ),
    ],
    hint="rows whose squares are the squared length of total stay whole, the others are divided by 4; not {answer}",
)
