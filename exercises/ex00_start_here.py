"""Exercises of 00_start_here."""

import numpy as np

from exercises import ANYTHING, Case, Exercise, Mistake

measured_efficiency = Exercise(
    cases=[
        Case(
            args=(0.02, 0.05, 2),
            answer=0.4,
            mistakes=[
                Mistake(
                    lambda alone, together, n: n * alone / together,
                    "0.8 is the speed-up of two ranks; the efficiency is that divided by the "
                    "number of ranks",
                ),
                Mistake(
                    lambda alone, together, n: alone / (n * together),
                    "each of the two ranks does a batch of its own, so two "
                    "batches are done in a step",
                ),
                Mistake(
                    lambda alone, together, n: together / alone,
                    "the step with the exchange takes longer, so the efficiency is below 1; divide "
                    "the other way round",
                ),
            ],
        ),
        Case(
            args=(1.0, 1.0, 8),
            answer=1,
            hint="eight ranks at full speed have the speed-up 8 and the efficiency 1; "
            "you have {answer}",
        ),
    ],
    hint="0.02 s alone, 0.05 s with a second rank: two batches in 0.05 s instead of 0.04 s; you "
    "have {answer}",
)

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

average_on_ranks = Exercise(
    cases=[
        Case(
            args=([[2.0, 4.0], [6.0, 0.0], [1.0, 2.0]],),
            answer=[[3, 2], [3, 2], [3, 2]],
            mistakes=[
                Mistake(
                    lambda tensors: [np.sum(tensors, axis=0)] * len(tensors),
                    "that is the sum; allreduce divides it by the number of ranks "
                    "unless told otherwise",
                ),
                Mistake(
                    lambda tensors: np.mean(tensors, axis=0),
                    "three ranks take part, and each of them gets a result",
                ),
                Mistake(
                    lambda tensors: [np.mean(tensors, axis=0), ANYTHING, ANYTHING],
                    "after an allreduce every rank holds the same numbers",
                ),
                Mistake(
                    lambda tensors: [[np.mean(row)] * len(row) for row in tensors],
                    "that is the mean over the numbers of one rank; "
                    "average over the ranks, place by place",
                ),
            ],
        ),
    ],
    hint="from [2, 4], [6, 0], [1, 2] each rank gets [3, 2]; you have {answer}",
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
