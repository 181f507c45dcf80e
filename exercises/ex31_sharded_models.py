"""Exercises of 31_sharded_models."""

import math

from exercises import Case, Exercise, Mistake

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
