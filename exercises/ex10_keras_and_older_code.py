"""Exercises of 10_keras_and_older_code."""

from exercises import Case, Exercise, Mistake

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
