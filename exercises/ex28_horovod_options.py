"""Exercises of 28_horovod_options."""

from exercises import Case, Exercise, Mistake


def whole_message_twice(weights, ranks, passes=1, bits=32):
    return 2 * weights * bits / 8 / passes


def bits_counted(weights, ranks, passes=1, bits=32):
    return 2 * (ranks - 1) / ranks * weights * bits / passes


def once_round_the_ring(weights, ranks, passes=1, bits=32):
    return (ranks - 1) / ranks * weights * bits / 8 / passes


def passes_forgotten(weights, ranks, passes=1, bits=32):
    return 2 * (ranks - 1) / ranks * weights * bits / 8


bytes_of_batch = Exercise(
    cases=[
        Case(
            args=(1000000, 2),
            answer=4000000,
            mistakes=[
                Mistake(
                    whole_message_twice,
                    "that is 2 x 4 bytes x the weights; in a ring each of N ranks sends (N - 1) / N of that",
                ),
                Mistake(bits_counted, "that counts bits; a byte has 8"),
                Mistake(
                    once_round_the_ring,
                    "the ring goes round twice, once to add up and once to hand out",
                ),
            ],
        ),
        Case(
            args=(1000000, 4, 4, 16),
            answer=750000,
            mistakes=[
                Mistake(passes_forgotten, "with passes=4 only every fourth batch communicates"),
            ],
        ),
    ],
    hint="a million weights on 2 ranks, 32 bits are 4,000,000 bytes a batch; you have {answer}",
)
