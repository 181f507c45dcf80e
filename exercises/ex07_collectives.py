"""Exercises of 07_collectives."""

import numpy as np

from exercises import Case, Exercise, Mistake


def average(gradients, sizes):
    return np.split(np.mean(gradients, axis=0), np.cumsum(sizes)[:-1])


def own_loss_only(gradients, sizes):
    ends = np.cumsum(sizes)
    return [row[end - size : end] for row, size, end in zip(np.array(gradients), sizes, ends)]


def equal_parts(gradients, sizes):
    return np.array_split(np.sum(gradients, axis=0), len(sizes))


def whole_sum(gradients, sizes):
    return [np.sum(gradients, axis=0) for _ in sizes]


allgather_gradient = Exercise(
    cases=[
        Case(
            args=(np.array([[1.0, 2, 3], [10, 20, 30]]), [1, 2]),
            answer=[[11], [22, 33]],
            mistakes=[
                Mistake(average, "that is the average, which Horovod takes; the total of the losses counts"),
                Mistake(own_loss_only, "what a rank gave is in every rank's loss, not in its own alone"),
                Mistake(equal_parts, "rank 0 gave one number, and rank 1 gave two: `sizes` says where to cut"),
                Mistake(whole_sum, "that is the gradient by all that was gathered; each rank needs its own part"),
            ],
        ),
        Case(args=(np.array([[1.0, 2, 3], [10, 20, 30], [0, 0, 100]]), [2, 0, 1]), answer=[[11, 22], [], [133]]),
    ],
    hint="the total grows by 1 + 10 = 11 when rank 0's number grows by 1; you have {answer}",
)


def whole_row_to_each(rows, splits):
    return [[value for row in rows for value in row] for _ in rows]


def each_keeps_its_own(rows, splits):
    return [list(row) for row in rows]


def always_from_the_left(rows, splits):
    return [[v for row, counts in zip(rows, splits) for v in row[: counts[i]]] for i in range(len(rows))]


def one_number_each(rows, splits):
    return [[row[i] for row in rows] for i in range(len(rows))]


after_alltoall = Exercise(
    cases=[
        Case(
            args=([[1, 2, 3], [11, 12, 13]], [[2, 1], [1, 2]]),
            answer=[[1, 2, 11], [3, 12, 13]],
            mistakes=[
                Mistake(whole_row_to_each, "that is an allgather: everybody gets everything"),
                Mistake(each_keeps_its_own, "nothing has moved: rank 0 still has 1, 2, 3"),
                Mistake(
                    always_from_the_left,
                    "the part for rank 1 begins where the part for rank 0 ends, not at the left end of the row",
                ),
                Mistake(
                    one_number_each,
                    "that is an alltoall with parts of one number; here `splits` says how long each part is",
                ),
            ],
        ),
        Case(args=([[1, 2], [11, 12, 13, 14]], [[0, 2], [3, 1]]), answer=[[11, 12, 13], [1, 2, 14]]),
    ],
    hint="rank 0 gets the first 2 numbers of rank 0 and the first of rank 1, which is 1, 2, 11; you have {answer}",
)


def in_bytes(share, latency, bandwidth):
    return share / (1 - share) * latency * bandwidth


def share_of_the_latency(share, latency, bandwidth):
    return share * latency * bandwidth / 4


def without_latency(share, latency, bandwidth):
    return share * bandwidth / 4


def for_a_half(share, latency, bandwidth):
    return latency * bandwidth / 4


def in_proportion(share, latency, bandwidth):
    return 2 * share * latency * bandwidth / 4


def share_and_rest_swapped(share, latency, bandwidth):
    return (1 - share) / share * latency * bandwidth / 4


length_for_share = Exercise(
    cases=[
        Case(
            args=(0.5, 0.002, 400e6),
            answer=200_000,
            mistakes=[
                Mistake(in_bytes, "800,000 are the bytes; how many float32 numbers are these?"),
                Mistake(
                    share_of_the_latency,
                    "the bytes of 100,000 numbers take 1 ms, half of the latency; the whole time is latency and bytes",
                ),
                Mistake(without_latency, "that is what the line carries in half a second; the latency is 0.002 s"),
            ],
        ),
        Case(
            args=(0.9, 0.002, 400e6),
            answer=1_800_000,
            mistakes=[
                Mistake(for_a_half, "right for a half; for 0.9 the bytes must take nine times as long as the latency"),
                Mistake(
                    in_proportion,
                    "360,000 numbers take 3.6 ms and the latency 2 ms: that is 64% of the time, not 90%",
                ),
                Mistake(share_and_rest_swapped, "with so few numbers it is the latency that takes 0.9 of the time"),
            ],
            hint="for 0.9 the bytes must take 18 ms beside the 2 ms of the latency; you have {answer}",
        ),
    ],
    hint="200,000 numbers are 800,000 bytes and take 2 ms, as long as the latency; you have {answer}",
)
