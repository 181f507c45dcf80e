"""Exercises of 30_bert."""

from exercises import Case, Exercise, Mistake

weight_of_words = Exercise(
    kind="a list with a factor for each rank",
    cases=[
        Case(
            args=([30, 10],),
            answer=[2 / 3, 2.0],
            mistakes=[
                Mistake(
                    lambda counts: [count * len(counts) / sum(counts) for count in counts],
                    "the other way round: dividing by a small count makes each word of that rank weigh more",
                ),
                Mistake(
                    lambda counts: [1 / (len(counts) * count) for count in counts],
                    "these are the weights in the mean of the means; divide each by the right weight, 1 / 40",
                ),
                Mistake(
                    lambda counts: [sum(counts) / count for count in counts],
                    "twice too much: the ranks' means are averaged, so each is also divided by the 2 ranks",
                ),
            ],
        ),
        Case(
            args=([1, 1, 2],),
            answer=[4 / 3, 4 / 3, 2 / 3],
            hint="three ranks with 4 words: 1 / (3 x 1) instead of 1 / 4 is 4 / 3; you have {answer}",
        ),
    ],
    hint="30 and 10 words: 1 / (2 x 30) instead of 1 / 40, and 1 / (2 x 10); you have {answer}",
)
