"""Exercises of 09_horovod_word2vec."""

from exercises import Case, Exercise, Mistake

steps_and_rate = Exercise(
    cases=[
        Case(
            args=(128, 2),
            answer=[100, 4.0],
            mistakes=[
                Mistake(
                    lambda batch, size: (200, 2.0),
                    "these are the steps and the rate of one process; two ranks with 128 pairs each "
                    "see 256 pairs in a step",
                ),
                Mistake(
                    lambda batch, size: (200, 2.0 * size),
                    "in 200 steps two ranks with 128 pairs each would see all pairs twice",
                ),
                Mistake(
                    lambda batch, size: (100, 2.0),
                    "half as many steps at the old rate go half as far",
                ),
                Mistake(
                    lambda batch, size: (200 * 128 // (batch * size) + 1, 2.0 * batch * size / 128),
                    "floor and add one is one step too many wherever the division has no remainder",
                ),
            ],
        ),
        Case(
            args=(64, 2),
            answer=[200, 2.0],
            mistakes=[
                Mistake(
                    lambda batch, size: (-(-200 // size), 2.0 * size),
                    "twice 64 pairs are 128: a step of both ranks is as large as that of one process",
                ),
                Mistake(
                    lambda batch, size: (-(-200 * 128 // (batch * size)), 2.0 * size),
                    "the steps are right; the rate goes with the pairs of all ranks, and twice 64 are 128",
                ),
            ],
        ),
        Case(
            args=(128, 3),
            answer=[67, 6.0],
            mistakes=[
                Mistake(
                    lambda batch, size: (200 * 128 // (batch * size), 2.0 * batch * size / 128),
                    "66 steps of 3 times 128 pairs are a few pairs too few: round up",
                ),
                Mistake(
                    lambda batch, size: (200 * 128 / (batch * size), 2.0 * batch * size / 128),
                    "a rank takes a whole number of steps: round up",
                ),
            ],
        ),
    ],
    hint="count the pairs that all ranks see in one step, `on_each_rank * size`; you have {answer}",
    kind="a pair (steps, lr)",
)
