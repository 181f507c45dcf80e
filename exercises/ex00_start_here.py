"""Exercises of 00_start_here."""

import numpy as np

from exercises import Case, Exercise, Mistake

total_of = Exercise(
    cases=[
        Case(
            args=(3,),
            answer=6,
            mistakes=[
                Mistake(lambda n: sum(range(n)), "rank r holds r + 1: the numbers are 1, 2 and 3"),
                Mistake(
                    lambda n: (n + 1) / 2,
                    "that is the average, and op=hvd.Sum asks for the sum",
                ),
            ],
        ),
        Case(args=(1,), answer=1),
        Case(args=(10,), answer=55, hint="the ten ranks hold 1 to 10; you have {answer}"),
    ],
    hint="three ranks hold 1, 2 and 3, ask them with connect(3); you have {answer}",
)


def touched_only(parts):
    """Divide each row by the number of ranks that have touched it."""
    rows = {row for part in parts for row in part}
    found = {row: [part[row] for part in parts if row in part] for row in rows}
    return {row: sum(gradients) / len(gradients) for row, gradients in found.items()}


def summed(parts):
    """Add up, and do not divide."""
    return {row: len(parts) * gradient for row, gradient in right_average(parts).items()}


def last_wins(parts):
    """Overwrite what another rank has at the same row."""
    merged = {row: gradient for part in parts for row, gradient in part.items()}
    return {row: gradient / len(parts) for row, gradient in merged.items()}


def right_average(parts):
    """Sum over the ranks, divided by their number."""
    rows = {row for part in parts for row in part}
    return {row: sum(part.get(row, 0.0) for part in parts) / len(parts) for row in rows}


average_rows = Exercise(
    cases=[
        Case(
            args=([{3: 4.0, 7: 2.0}, {7: 6.0}],),
            answer={3: 2.0, 7: 4.0},
            mistakes=[
                Mistake(
                    touched_only,
                    "rank 1 has not touched row 3: its gradient there is 0, and it counts",
                ),
                Mistake(summed, "that is the sum over the ranks; divide it by their number"),
                Mistake(last_wins, "both ranks have touched row 7: add up 2 and 6 before you divide"),
            ],
        ),
        Case(args=([{1: 1.0}],), answer={1: 1.0}, hint="one rank keeps its gradient; you have {answer}"),
    ],
    hint="two ranks: row 3 has 4 and nothing, row 7 has 2 and 6; you have {answer}",
)

global_mean = Exercise(
    cases=[
        Case(
            args=([1.0, 4.0], [30, 10]),
            answer=1.75,
            mistakes=[
                Mistake(
                    lambda means, counts: sum(means) / len(means),
                    "2.5 is the mean of the means; rank 0 has three times as many examples, so it "
                    "must weigh more",
                ),
                Mistake(
                    lambda means, counts: np.dot(means, counts) / len(means),
                    "35 is the sum of the two products, halved; divide by the number of examples, "
                    "not of ranks",
                ),
                Mistake(
                    lambda means, counts: np.dot(means, counts),
                    "70 is the sum over all examples; divide it by their number",
                ),
            ],
        ),
    ],
    hint="means 1.0 and 4.0 of 30 and 10 examples: add up the 40 examples; you have {answer}",
)
