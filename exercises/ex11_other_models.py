"""Exercises of 11_other_models."""

import numpy as np

from exercises import Case, Exercise, Mistake

gradients_of_abt = Exercise(
    cases=[
        Case(
            args=(
                np.array([[1.0, 2.0]]),
                np.array([[3.0, 5.0, 7.0]]),
                np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
            ),
            answer=([[1, 2, 4]], [[3, 5, 7], [6, 10, 14]]),
            mistakes=[
                Mistake(
                    lambda dy, a, b: (dy.T @ a, dy @ b),
                    "these are both gradients, in the other order; that of a comes first and has "
                    "the shape of a",
                ),
                Mistake(
                    lambda dy, a, b: (dy @ b, a.T @ dy),
                    "the gradient of b has the shape of b; yours is that of its transpose",
                ),
            ],
        ),
    ],
    hint="a changes y = a b^T by da b^T, so its gradient is dy b; b in the same way; "
    "you have {answer}",
)


def whole_message_twice(weights, ranks, passes=1, bits=32):
    return 2 * weights * bits / 8 / passes


def bits_counted(weights, ranks, passes=1, bits=32):
    return 2 * (ranks - 1) / ranks * weights * bits / passes


def once_round_the_ring(weights, ranks, passes=1, bits=32):
    return (ranks - 1) / ranks * weights * bits / 8 / passes


def passes_forgotten(weights, ranks, passes=1, bits=32):
    return 2 * (ranks - 1) / ranks * weights * bits / 8


bytes_of_batch = Exercise(
    cases=[
        Case(
            args=(1000000, 2),
            answer=4000000,
            mistakes=[
                Mistake(
                    whole_message_twice,
                    "that is 2 x 4 bytes x the weights; in a ring each of N ranks "
                    "sends (N - 1) / N of that",
                ),
                Mistake(bits_counted, "that counts bits; a byte has 8"),
                Mistake(
                    once_round_the_ring,
                    "the ring goes round twice, once to add up and once to hand out",
                ),
            ],
        ),
        Case(
            args=(1000000, 4, 4, 16),
            answer=750000,
            mistakes=[
                Mistake(passes_forgotten, "with passes=4 only every fourth batch communicates"),
            ],
        ),
    ],
    hint="a million weights on 2 ranks, 32 bits are 4,000,000 bytes a batch; you have {answer}",
)
