"""Exercises of 09_horovod_word2vec."""

import numpy as np

from exercises import Case, Exercise, Mistake

part_sizes = Exercise(
    cases=[
        Case(
            args=(128, 2),
            answer=[64, 64],
            mistakes=[
                Mistake(
                    lambda batch, size: [batch] * size,
                    "the ranks share one batch of 128, they do not each get one",
                ),
                Mistake(
                    lambda batch, size: [batch * rank // size for rank in range(size)],
                    "those are the places where the parts start",
                ),
            ],
        ),
        Case(
            args=(128, 3),
            answer=[42, 43, 43],
            mistakes=[
                Mistake(
                    lambda batch, size: [batch // size] * size,
                    "3 times 42 is 126, and two pairs would be lost",
                ),
                Mistake(
                    lambda batch, size: [-(-batch // size)] * size,
                    "3 times 43 is 129, one pair too many",
                ),
                Mistake(
                    lambda batch, size: [batch // size + (r < batch % size) for r in range(size)],
                    "the sizes are right, their order is not: 128 * 1 // 3 is 42, where the part "
                    "of rank 0 ends",
                ),
                Mistake(
                    lambda batch, size: [batch / size] * size,
                    "a part has a whole number of pairs, see the floor division in the slice",
                ),
            ],
        ),
    ],
    hint="128 pairs for 3 ranks are cut at 42 and 85; you have {answer}",
)

def summed(slices, rows):
    dense = np.zeros([rows, 2])
    for indices, values in slices:
        np.add.at(dense, indices, values)
    return dense


def repeats_lost(slices, rows):
    dense = np.zeros([rows, 2])
    for indices, values in slices:
        dense[indices] += values
    return dense / len(slices)


def divided_by_ranks_that_touch_it(slices, rows):
    touched = [sum(row in indices for indices, _ in slices) for row in range(rows)]
    return summed(slices, rows) / np.maximum(touched, 1)[:, None]


def overwritten(slices, rows):
    dense = np.zeros([rows, 2])
    for indices, values in slices:
        dense[indices] = values
    return dense / len(slices)


average_of_slices = Exercise(
    cases=[
        Case(
            args=(
                [
                    (np.array([0, 2, 2]), np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])),
                    (np.array([2]), np.array([[4.0, 4.0]])),
                ],
                4,
            ),
            answer=[[0.5, 0.5], [0, 0], [3, 3], [0, 0]],
            mistakes=[
                Mistake(summed, "that is the sum; divide it by the number of ranks"),
                Mistake(
                    repeats_lost,
                    "row 2 comes twice on rank 0, and `dense[indices] += values` adds only one of "
                    "them: see np.add.at",
                ),
                Mistake(
                    divided_by_ranks_that_touch_it,
                    "Horovod divides each row by the number of all ranks, also a row that one rank "
                    "alone has touched",
                ),
                Mistake(
                    overwritten,
                    "row 2 comes from both ranks, 1 + 1 + 4; you overwrite what is there",
                ),
            ],
        ),
    ],
    hint="row 2 comes three times, 1 + 1 + 4, and the sum is divided by the number of ranks; you "
    "have {answer}",
)
