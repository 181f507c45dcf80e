"""Exercises of 05_horovod_word2vec."""

import numpy as np

from exercises import ANYTHING, Case, Exercise, Mistake

rank_weight = Exercise(
    cases=[
        Case(
            args=(1, [1, 3]),
            answer=1.5,
            mistakes=[
                Mistake(
                    lambda rank, sizes: sizes[rank] / sum(sizes),
                    "0.75 is the rank's share of the pairs; "
                    "the average divides by the 2 ranks once more",
                ),
                Mistake(
                    lambda rank, sizes: sizes[rank],
                    "3 is the batch size; the weights of all ranks have the mean 1",
                ),
                Mistake(
                    lambda rank, sizes: sum(sizes) / len(sizes) / sizes[rank],
                    "the fraction is upside down, a rank with more pairs weighs more",
                ),
            ],
        ),
        Case(
            args=(0, [5, 5, 5]),
            answer=1,
            mistakes=[
                Mistake(
                    lambda rank, sizes: 2 * sizes[rank] / sum(sizes),
                    "the average divides by the number of ranks, here 3, not always 2",
                ),
            ],
            hint="three equal batches need no correction, so the factor is 1; you have {answer}",
        ),
    ],
    hint="with batches of 1 and 3 pairs, rank 1 has 3 of 4 pairs, and the average divides by 2; "
    "you have {answer}",
)

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

plan = Exercise(
    cases=[
        Case(
            args=(0.5, 1000, 4),
            answer=(2, 250),
            mistakes=[
                Mistake(
                    lambda lr, steps, size: (lr, steps),
                    "4 ranks see 4 batches in each step, so 1000 steps would go "
                    "over the data four times",
                ),
                Mistake(
                    lambda lr, steps, size: (lr, steps // size),
                    "the steps are right; the learning rate is not scaled: a step averages 4 "
                    "batches, so each may be 4 times as long",
                ),
                Mistake(
                    lambda lr, steps, size: (lr * size, steps),
                    "the learning rate is right; the run is not shortened, although 4 ranks see 4 "
                    "batches in each step",
                ),
                Mistake(
                    lambda lr, steps, size: (lr * size**0.5, steps // size),
                    "that is the square root rule, for adaptive optimizers; plain gradient descent "
                    "scales with the number of ranks",
                ),
                Mistake(
                    lambda lr, steps, size: (lr / size, ANYTHING),
                    "the learning rate is divided where it should be multiplied "
                    "by the number of ranks",
                ),
            ],
        ),
    ],
    hint="4 ranks see 4 batches in each step: fewer steps, with a higher learning rate; "
    "you have {answer}",
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
