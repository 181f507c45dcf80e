"""Exercises of 23_launchers."""

from exercises import Case, Exercise, Mistake


def earlier_hosts_counted(rank, slots):
    host = 0
    while rank >= slots[host]:
        rank -= slots[host]
        host += 1
    return rank, host


factor = Exercise(
    kind="a number",
    cases=[
        Case(
            args=(128, 2),
            answer=1.0,
            mistakes=[
                Mistake(
                    lambda own, size: own / 256,
                    "two equal parts need no factor, and this halves the loss: Horovod takes the "
                    "mean over the ranks, so it divides by their number already",
                ),
                Mistake(
                    lambda own, size: own,
                    "this gives the sum of the part's losses; Horovod divides it by the number of ranks, but who "
                    "divides by 256?",
                ),
            ],
        ),
        Case(
            args=(86, 3),
            answer=86 * 3 / 256,
            mistakes=[
                Mistake(
                    lambda own, size: 1.0,
                    "so each part weighs a third, one with 86 pairs as much as one with 85",
                ),
                Mistake(
                    lambda own, size: 256 / (own * size),
                    "upside down: the mean of a part with more pairs must weigh more, not less",
                ),
            ],
        ),
        Case(args=(85, 3), answer=85 * 3 / 256),
    ],
    hint="after your factor and Horovod's mean over the ranks each loss must be divided by 256; "
    "you have {answer}",
)

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
