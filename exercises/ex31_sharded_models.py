"""Exercises of 31_sharded_models."""

from exercises import Case, Exercise, Mistake

CUT = [0, 8, 12, 16]


def every_rank_whole(weights, size, stage):
    return weights * 16 / 1e9


def only_the_cut_part(weights, size, stage):
    return weights * CUT[stage] / size / 1e9


def everything_divided(weights, size, stage):
    return weights * 16 / size / 1e9


def one_moment(weights, size, stage):
    cut = [0, 4, 8, 12][stage]
    return weights * (12 - cut + cut / size) / 1e9


def two_ranks(weights, size, stage):
    return weights * (16 - CUT[stage] / 2) / 1e9


def in_bytes(weights, size, stage):
    return weights * (16 - CUT[stage] + CUT[stage] / size)


kept_gb = Exercise(
    cases=[
        Case(
            args=(7_000_000_000, 8, 1),
            answer=63.0,
            mistakes=[
                Mistake(every_rank_whole, "that is a replica's; ZeRO 1 cuts the moments, 8 bytes of the 16"),
                Mistake(only_the_cut_part, "what is not cut is still there, whole, on every rank"),
                Mistake(everything_divided, "only what the stage cuts is divided by the ranks"),
                Mistake(one_moment, "Adam has two moments: 16 bytes a weight"),
                Mistake(two_ranks, "there are eight ranks here, not two"),
                Mistake(in_bytes, "in GB: divide by 1e9"),
            ],
        ),
        Case(args=(1_000_000_000, 4, 0), answer=16.0, mistakes=[]),
        Case(args=(1_000_000_000, 4, 2), answer=7.0, mistakes=[]),
        Case(args=(1_000_000_000, 4, 3), answer=4.0, mistakes=[]),
    ],
    hint="7 billion weights on 8 ranks with ZeRO 1: weights and gradients whole, an eighth of the moments; you have "
    "{answer:.1f} GB",
)
