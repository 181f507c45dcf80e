"""Exercises of 29_sequence_to_sequence."""

import numpy as np

from exercises import Case, Exercise, Mistake


def clipped_before_the_average(gradients, counts, limit):
    scaled = [np.array(g) * min(1, limit / np.linalg.norm(g)) for g in gradients]
    return np.average(scaled, axis=0, weights=counts)


def every_rank_alike(gradients, counts, limit):
    average = np.mean(gradients, axis=0)
    return average * min(1, limit / np.linalg.norm(average))


def unclipped(gradients, counts, limit):
    return np.average(gradients, axis=0, weights=counts)


def always_of_that_length(gradients, counts, limit):
    average = unclipped(gradients, counts, limit)
    return average * limit / np.linalg.norm(average)


clipped_average = Exercise(
    cases=[
        Case(
            args=([[6.0, 8.0], [0.6, -0.8]], [1, 3], 1.0),
            answer=[0.8123239, 0.5832069],
            mistakes=[
                Mistake(
                    every_rank_alike,
                    "the second rank has three times as many dates as the first; one process "
                    "would count each date once",
                ),
                Mistake(
                    clipped_before_the_average,
                    "you clipped each rank's gradient before the average; one process clips what "
                    "it has averaged",
                ),
                Mistake(
                    lambda *given: np.clip(unclipped(*given), -given[-1], given[-1]),
                    "that clips each number by itself, which turns the gradient; scale all of them "
                    "by one factor",
                ),
                Mistake(unclipped, "the average has the norm 2.4, which is above the limit of 1"),
            ],
        ),
        Case(
            args=([[0.3, 0.0], [0.1, 0.0]], [1, 1], 1.0),
            answer=[0.2, 0],
            mistakes=[
                Mistake(
                    always_of_that_length,
                    "a gradient whose norm is below the limit stays as it is; you made it longer",
                ),
            ],
            hint="the average has the norm 0.2, which is below the limit, so it stays (0.2, 0); "
            "you have {answer}",
        ),
    ],
    hint="the average over the four dates is (1.95, 1.4); divide it by its norm, 2.40, to get the "
    "norm 1; you have {answer}",
)


def waited(seconds):
    return sum(max(step) * len(step) - sum(step) for step in seconds)


idle_share = Exercise(
    kind="one number",
    cases=[
        Case(
            args=([[1.0, 3.0], [2.0, 2.0]],),
            answer=0.2,
            mistakes=[
                Mistake(
                    waited,
                    "2 is the seconds that were waited; divide by all the time of both ranks",
                ),
                Mistake(
                    lambda seconds: waited(seconds) / sum(map(sum, seconds)),
                    "divide the 2 s of waiting by all the time, 10 s, not by the 8 s of computing",
                ),
                Mistake(
                    lambda seconds: waited(seconds) / sum(map(max, seconds)),
                    "the two steps take 5 s on each of two ranks, which is 10 s in all",
                ),
                Mistake(
                    lambda seconds: np.mean([1 - np.mean(step) / max(step) for step in seconds]),
                    "the mean of the steps' shares gives a short step as much weight as a long "
                    "one; add up the seconds first",
                ),
            ],
        ),
        Case(
            args=([[1.0, 1.0, 4.0]],),
            answer=0.5,
            hint="two of three ranks wait for 3 s each, of 12 s in all; you have {answer}",
        ),
    ],
    hint="steps of 3 s and 2 s on two ranks are 10 s, of which 8 s are computing; "
    "you have {answer}",
)
