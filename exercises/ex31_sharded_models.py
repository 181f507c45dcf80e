"""Exercises of 31_sharded_models."""

import math

from exercises import ANYTHING, Case, Exercise, Mistake

CUT = [0, 8, 12, 16]


def everything_divided(weights, gb, stage):
    return math.ceil(weights * 16 / 1e9 / gb)


def only_the_cut_part(weights, gb, stage):
    return math.ceil(weights * CUT[stage] / 1e9 / gb)


def one_moment(weights, gb, stage):
    cut = [0, 4, 8, 12][stage]
    return math.ceil(weights * cut / 1e9 / (gb - weights * (12 - cut) / 1e9))


def not_rounded(weights, gb, stage):
    return weights * CUT[stage] / 1e9 / (gb - weights * (16 - CUT[stage]) / 1e9)


def in_gigabytes(weights, gb, stage):
    return math.ceil(not_rounded(weights, gb, stage))


def rounded_down(weights, gb, stage):
    return math.floor(not_rounded(weights, gb, stage))


ranks_needed = Exercise(
    cases=[
        Case(
            args=(7_000_000_000, 33, 2),
            answer=17,
            mistakes=[
                Mistake(everything_divided, "only what the stage cuts is divided by the ranks, the rest is not"),
                Mistake(only_the_cut_part, "what is not cut is still there, whole, on every rank: it takes room, too"),
                Mistake(one_moment, "Adam has two moments: 16 bytes a weight"),
                Mistake(not_rounded, "a number of ranks is whole: round up"),
                Mistake(rounded_down, "with one rank fewer than it takes each would keep too much: round up"),
            ],
        ),
        Case(args=(7_000_000_000, 24, 3), answer=5, mistakes=[]),
        Case(args=(1_000_000_000, 13, 1), answer=2, mistakes=[]),
        Case(
            args=(100_000_000, 1, 1),
            answer=4,
            mistakes=[
                Mistake(in_gigabytes, "0.8 GB are cut, 0.2 GB are free; in floats 1 - 0.8 is a hair less: count bytes"),
            ],
        ),
    ],
    hint="7 billion weights, ZeRO 2: 28 of the 33 GB are taken by what is whole, and 84 are cut; you have {answer}",
)

gathers_once = Exercise(
    kind="two numbers, MB when the backward pass begins and MB sent",
    cases=[
        Case(
            args=(38, 2),
            answer=[95, 38],
            mistakes=[
                Mistake(
                    lambda w, size: (w + 4 * w / size, ANYTHING),
                    "no averaged gradient is there yet: only this rank's part of the weights and of two moments",
                ),
                Mistake(
                    lambda w, size: (3 * w / size, ANYTHING),
                    "all matrices are there, too: each layer keeps the whole one that it gathered",
                ),
                Mistake(
                    lambda w, size: (w + 2 * w / size, ANYTHING),
                    "besides the whole matrices a rank keeps its parts of three arrays: the weights and two moments",
                ),
                Mistake(
                    lambda w, size: (ANYTHING, 3 * (size - 1) / size * w),
                    "that is ZeRO 3, with two allgathers; one of them is gone",
                ),
                Mistake(
                    lambda w, size: (ANYTHING, (size - 1) / size * w),
                    "that is one collective; an allgather and a reducescatter are two",
                ),
                Mistake(
                    lambda w, size: (ANYTHING, 2 * w),
                    "two collectives, but a rank does not send its own part to itself: (size - 1) / size",
                ),
            ],
        ),
        Case(
            args=(100, 4),
            answer=[175, 150],
            mistakes=[
                Mistake(lambda w, size: (2.5 * w, ANYTHING), "right for two ranks; four have a quarter each"),
                Mistake(lambda w, size: (ANYTHING, w), "right for two ranks; of four each sends three quarters, twice"),
            ],
            hint="100 MB and 4 ranks: whole matrices and three quarters of 100 MB, two collectives; you have {answer}",
        ),
    ],
    hint="38 MB, 2 ranks: the whole matrices and the halves that are kept; two collectives; you have {answer}",
)
