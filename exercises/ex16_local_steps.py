"""Exercises of 16_local_steps."""

import numpy as np

from exercises import Case, Exercise, Mistake

expected_staleness = Exercise(
    cases=[
        Case(
            args=(2,),
            answer=1,
            mistakes=[
                Mistake(
                    lambda workers: workers,
                    "a worker's own push does not make its gradient stale; count the others",
                ),
                Mistake(
                    lambda workers: (workers - 1) / workers,
                    "that is the mean over both workers; every push of the other one counts for "
                    "this gradient",
                ),
            ],
        ),
        Case(args=(1,), answer=0),
        Case(args=(5,), answer=4),
    ],
    hint="while one worker takes a step, each of the others takes one, too; you have {answer}",
)


def pushes_since(log, start, end, worker):
    """Count the pushes of others from log[start] to before log[end]."""
    return sum(what == "push" and who != worker for what, who in log[start:end])


def pushes_of(log):
    """Return the place in the log and the worker of each push."""
    return [(place, who) for place, (what, who) in enumerate(log) if what == "push"]


def since_its_first_pull(log):
    return [
        pushes_since(log, log.index(("pull", who)), place, None) for place, who in pushes_of(log)
    ]


def place_of_an_equal_push(log):
    staleness = []
    for push in log:
        if push[0] == "push":
            end = log.index(push)  # for the second push of A this is its first one
            start = max(place for place in range(end) if log[place] == ("pull", push[1]))
            staleness.append(pushes_since(log, start, end, push[1]))
    return staleness


def own_push_counted(log):
    staleness = []
    for end, who in pushes_of(log):
        start = max(place for place in range(end) if log[place] == ("pull", who))
        staleness.append(pushes_since(log, start, end, who) + 1)
    return staleness


staleness_of = Exercise(
    cases=[
        Case(
            args=(
                [
                    ("pull", "A"),
                    ("pull", "B"),
                    ("push", "A"),
                    ("pull", "A"),
                    ("push", "B"),
                    ("push", "A"),
                ],
            ),
            answer=[0, 1, 1],
            mistakes=[
                Mistake(
                    since_its_first_pull,
                    "A has pulled again before its second push: count from a worker's last pull, "
                    "not from its first",
                ),
                Mistake(
                    place_of_an_equal_push,
                    "B pushes between the second pull of A and its push, so that push is 1 stale",
                ),
                Mistake(
                    lambda log: [0 for what, _ in log if what == "push"],
                    "a push of another worker between a pull and its push makes it stale by one",
                ),
                Mistake(
                    own_push_counted,
                    "the push itself does not count, only those of others before it",
                ),
            ],
        ),
    ],
    hint="A, B pull, A pushes, A pulls, B pushes, A pushes: 0, 1, 1; you have {answer}",
)

combined = Exercise(
    cases=[
        Case(
            args=(np.array([1.0, 2.0]), np.array([[0.5, 2.0], [0.75, 3.0]])),
            answer=[0.25, 3],
            mistakes=[
                Mistake(
                    lambda row, copies: copies.mean(axis=0),
                    "that is the average of the copies; the servers add up the changes",
                ),
                Mistake(
                    lambda row, copies: copies[-1],
                    "that is the last copy; a push adds a change, it does not overwrite the row",
                ),
                Mistake(
                    lambda row, copies: row + copies.sum(axis=0),
                    "that adds the copies to the row; a worker pushes its copy minus "
                    "the row that it pulled",
                ),
                Mistake(
                    lambda row, copies: copies.sum(axis=0),
                    "that is the sum of the copies; a worker pushes its copy minus "
                    "the row that it pulled",
                ),
                Mistake(
                    lambda row, copies: (copies - row).sum(axis=0),
                    "those are the changes; add them to the row",
                ),
            ],
        ),
    ],
    hint="[1, 2] and the copies [0.5, 2] and [0.75, 3] give [0.25, 3]; you have {answer}",
)
