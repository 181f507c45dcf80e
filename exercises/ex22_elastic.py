"""Exercises of 22_elastic."""

from exercises import Case, Exercise, Mistake

steps_between_commits = Exercise(
    cases=[
        Case(
            args=(0.05, 0.01, 0.03),
            answer=167,
            mistakes=[
                Mistake(
                    lambda commit, step, share: int(commit / (share * step)),
                    "166 steps cost a little more than the share; round up",
                ),
                Mistake(
                    lambda commit, step, share: round(commit / step),
                    "that is a commit in steps; divide by the share that it may cost",
                ),
            ],
        ),
    ],
    hint="a commit of 0.05 s may be 3% of n steps of 0.01 s; you have {answer}",
)
