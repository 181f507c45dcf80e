"""Exercises of 23_launchers."""

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
