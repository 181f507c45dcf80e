"""Exercises of 30_bert."""

from exercises import ANYTHING, Case, Exercise, Mistake

mean_over_words = Exercise(
    kind="a pair of numbers",
    cases=[
        Case(
            args=([60.0, 10.0], [30, 10]),
            answer=(1.75, 1.5),
            mistakes=[
                Mistake(
                    lambda sums, counts: (sum(sums) / len(sums), ANYTHING),
                    "35 is the mean of the sums; divide what both ranks have by the 40 words of both",
                ),
                Mistake(
                    lambda sums, counts: (1.5, 1.75),
                    "the other way round: first the mean over all 40 words, then the mean of the means 2 and 1",
                ),
            ],
        ),
        Case(
            args=([3.0, 2.0, 7.0], [1, 1, 2]),
            answer=(3, 17 / 6),
            hint="three ranks: 12 over 4 words, and the mean of 3, 2 and 3.5; you have {answer}",
        ),
    ],
    hint="sums 60 and 10 over 30 and 10 words: 70 / 40, and the mean of 2 and 1; you have {answer}",
)
