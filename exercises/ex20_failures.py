"""Exercises of 20_failures."""

from exercises import Case, Exercise, Mistake


def saved_at(log):
    """Return the place of the last save in the log, or 0."""
    places = [place for place, (what, _) in enumerate(log) if what == "saved"]
    return places[-1] if places else 0


def never_done(log, batches):
    done = {batch for what, batch in log if what == "done"}
    return [batch for batch in range(batches) if batch not in done]


def counted(log, batches):
    return list(range(sum(what == "done" for what, _ in log[: saved_at(log)]), batches))


def since_the_save(log, batches):
    return [batch for what, batch in log[saved_at(log) :] if what == "done"]


to_do = Exercise(
    cases=[
        Case(
            args=(
                [("done", 0), ("done", 2), ("saved", None), ("done", 1), ("done", 3)],
                6,
            ),
            answer=[1, 3, 4, 5],
            mistakes=[
                Mistake(
                    never_done,
                    "1 and 3 were done, but after the last save: the tables that came back do not "
                    "know them",
                ),
                Mistake(
                    counted,
                    "two batches were done before the save, but not the first two: 1 was not",
                ),
                Mistake(
                    since_the_save,
                    "those are to be done again; 4 and 5 have not been done at all",
                ),
            ],
            hint="0 and 2 of 6 batches are in the saved tables, so 1, 3, 4 and 5 are left; "
            "you have {answer}",
        ),
        Case(
            args=([("done", 1), ("saved", None), ("done", 0), ("saved", None)], 3),
            answer=[2],
            hint="the last save counts, and it has seen 0 and 1; you have {answer}",
        ),
        Case(
            args=([("done", 1), ("done", 0)], 3),
            answer=[0, 1, 2],
            hint="nothing was saved, so all three are left; you have {answer}",
        ),
    ],
    hint="all batches but those that were done before the last save; you have {answer}",
)
