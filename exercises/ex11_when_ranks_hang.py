"""Exercises of 11_when_ranks_hang."""

from exercises import Case, Exercise, Mistake

time_inside = Exercise(
    cases=[
        Case(
            args=([0.3, 0.0, 0.1, 0.2],),
            answer=[0, 0.3, 0.2, 0.1],
            mistakes=[
                Mistake(
                    lambda delays: delays,
                    "that is how long each rank waits before it calls; the one that calls last "
                    "does not wait inside",
                ),
                Mistake(
                    lambda delays: [max(delays)] * len(delays),
                    "all leave together, but they have not entered together",
                ),
                Mistake(
                    lambda delays: [d - max(delays) for d in delays],
                    "the sign; a rank is inside until the last one comes, which is max(delays)",
                ),
                Mistake(
                    lambda delays: [d if d == max(delays) else 0 for d in delays],
                    "it is the others that wait for the last one, not the last one for them",
                ),
            ],
        ),
    ],
    hint="rank 0 enters last, after 0.3 s, and nobody leaves before; you have {answer}",
)


def up_to_the_shorter(calls):
    places = [place for place, made in enumerate(zip(*calls)) if len(set(made)) > 1]
    return places[0] if places else None


def first_of_two(calls):
    longest = max(len(calls[0]), len(calls[1]))
    padded = [list(one) + [""] * (longest - len(one)) for one in calls[:2]]
    places = [place for place, (a, b) in enumerate(zip(*padded)) if a != b]
    return places[0] if places else None


first_mismatch = Exercise(
    cases=[
        Case(
            args=([["broadcast", "allreduce", "allgather"], ["broadcast", "allgather", "allreduce"]],),
            answer=1,
            mistakes=[
                Mistake(lambda calls: calls[0][1], "the place is asked for, not the name that stands there"),
                Mistake(
                    lambda calls: 2,
                    "places count from 0, and the first disagreement counts: call 0 agrees, call 1 does not",
                ),
                Mistake(
                    lambda calls: any(one != calls[0] for one in calls),
                    "True or False says whether they disagree; the question is where",
                ),
            ],
        ),
        Case(
            args=([["allreduce"] * 4, ["allreduce"] * 3],),
            answer=3,
            mistakes=[
                Mistake(
                    up_to_the_shorter,
                    "rank 1 has made one call fewer: rank 0 waits in call 3, so that is where they disagree",
                ),
            ],
            hint="rank 0 makes calls 0, 1, 2, 3 and rank 1 only 0, 1, 2: they disagree at 3; you have {answer}",
        ),
        Case(
            args=([["allreduce"], ["allreduce"], ["broadcast"]],),
            answer=0,
            mistakes=[
                Mistake(
                    first_of_two,
                    "three ranks: rank 2 is the one that differs; compare all of them, not the first two",
                ),
            ],
        ),
        Case(args=([["broadcast", "allreduce"]] * 2,), answer=None),  # all agree
    ],
    hint="the calls with number 0 are all broadcast, those with number 1 differ; you have {answer}",
)
