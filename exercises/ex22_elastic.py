"""Exercises of 22_elastic."""

from exercises import Case, Exercise, Mistake


def elastic_less_restart(stood, commits, fresh, checkpoints, step):
    return sum(stood) + commits / 2 * step - fresh - checkpoints / 2 * step


seconds_saved = Exercise(
    cases=[
        Case(
            args=([0.5, 3.5], 100, 3.0, 2000, 0.01),
            answer=8.5,
            mistakes=[
                Mistake(
                    lambda stood, commits, fresh, checkpoints, step: (
                        fresh + checkpoints * step - sum(stood) - commits * step
                    ),
                    "a kill comes on average in the middle of an interval: half of its steps are lost",
                ),
                Mistake(
                    lambda stood, commits, fresh, checkpoints, step: (
                        fresh - stood[0] + (checkpoints - commits) / 2 * step
                    ),
                    "a kill costs Elastic two standstills, also that when another rank takes the place",
                ),
                Mistake(
                    lambda stood, commits, fresh, checkpoints, step: fresh - sum(stood) + checkpoints / 2 * step,
                    "Elastic loses steps too, those since its last commit",
                ),
                Mistake(
                    lambda stood, commits, fresh, checkpoints, step: fresh - sum(stood) + (checkpoints - commits) / 2,
                    "steps and seconds are added; a step takes `step` seconds",
                ),
                Mistake(
                    elastic_less_restart,
                    "what Elastic saves is the cost of a restart less its own, not the other way",
                ),
            ],
        ),
        Case(
            args=([0.5, 3.5], 100, 2.0, 100, 0.02),
            answer=-2.0,
            mistakes=[
                Mistake(
                    lambda *numbers: abs(elastic_less_restart(*numbers)),
                    "with so many checkpoints the restart is faster by 2 s: that is -2",
                ),
                Mistake(
                    lambda *numbers: max(0, -elastic_less_restart(*numbers)),
                    "0 hides that the restart is faster: Elastic saves -2 s",
                ),
            ],
        ),
    ],
    hint="with standstills of 0.5 and 3.5 s against 3 s, 100 against 2,000 steps of 0.01 s: 8.5; you have {answer}",
)
