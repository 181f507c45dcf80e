"""Exercises of 27_own_gradients."""

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
                    "these are both gradients, in the other order; that of a comes first and has the shape of a",
                ),
                Mistake(
                    lambda dy, a, b: (dy @ b, a.T @ dy),
                    "the gradient of b has the shape of b; yours is that of its transpose",
                ),
            ],
        ),
        Case(
            args=lambda: (
                np.array([[1.0, 2.0], [3.0, 4.0]]),
                np.array([[1.0, 0.0], [2.0, 1.0]]),
                np.array([[1.0, 3.0], [0.0, 2.0]]),
            ),
            answer=([[1, 7], [3, 17]], [[7, 3], [10, 4]]),
            mistakes=[
                Mistake(
                    lambda dy, a, b: (dy @ b, dy.T * a),
                    "for the gradient of b, `*` is right only while a has one row: multiply matrices, with `@`",
                ),
            ],
        ),
    ],
    hint="a changes y = a b^T by da b^T, so its gradient is dy b; b in the same way; you have {answer}",
)
