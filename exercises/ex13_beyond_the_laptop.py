"""Exercises of 13_beyond_the_laptop."""

from exercises import Case, Exercise, Mistake


def earlier_hosts_counted(rank, slots):
    host = 0
    while rank >= slots[host]:
        rank -= slots[host]
        host += 1
    return rank, host


place = Exercise(
    kind="a pair (local rank, cross rank)",
    cases=[
        Case(
            args=(2, [2, 2]),
            answer=(0, 1),
            mistakes=[
                Mistake(
                    lambda rank, slots: (rank // slots[0], rank % slots[0]),
                    "first the local rank, then the cross rank",
                ),
                Mistake(
                    lambda rank, slots: (rank, rank // slots[0]),
                    "the local rank counts from 0 on each host",
                ),
            ],
        ),
        Case(
            args=(3, [1, 3]),
            answer=(2, 0),
            mistakes=[
                Mistake(
                    earlier_hosts_counted,
                    "no earlier host has a third rank, so this is cross rank 0; you counted all "
                    "earlier hosts",
                ),
                Mistake(
                    lambda rank, slots: (rank % slots[0], rank // slots[0]),
                    "the hosts have different numbers of slots, so dividing by "
                    "the first is not enough",
                ),
            ],
        ),
        Case(
            args=(4, [2, 1, 3]),
            answer=(1, 1),
            hint="rank 4 is the second on the third host, and of the hosts before only the first "
            "has a second; you have {answer}",
        ),
    ],
    hint="ranks 0 and 1 fill the first host, so rank 2 is the first on the second; "
    "you have {answer}",
)

least_mbit = Exercise(
    cases=[
        Case(
            args=(0.1, 1000000, 0.0),
            answer=80,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency: n_bytes / 1e6 / (compute - latency),
                    "that is in megabytes per second; a byte has 8 bits",
                ),
                Mistake(
                    lambda compute, n_bytes, latency: 8 * n_bytes / (compute - latency),
                    "that is in bit/s; a Mbit is a million of them",
                ),
                Mistake(
                    lambda compute, n_bytes, latency: 2 * 8 * n_bytes / 1e6 / (compute - latency),
                    "two hosts need not be twice as fast as one, only faster; they may communicate "
                    "for as long as they compute",
                ),
            ],
        ),
        Case(
            args=(0.1, 1000000, 0.02),
            answer=100,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency: 8 * n_bytes / 1e6 / compute,
                    "the latency takes 20 ms of the 100 ms that the exchange may last",
                ),
            ],
        ),
    ],
    hint="1 MB is 8 Mbit, and it may travel for as long as a step computes, 0.1 s; "
    "you have {answer}",
)
