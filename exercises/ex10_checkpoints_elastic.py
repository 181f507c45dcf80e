"""Exercises of 10_checkpoints_elastic."""

from exercises import Case, Exercise, Mistake


def places_in_the_batch(position, n, batch, rank, size):
    return batch * rank // size, batch * (rank + 1) // size


def parts_rounded_up(position, n, batch, rank, size):
    first = position + batch * rank // size
    return first, first - (-batch // size)


def beyond_the_last_word(position, n, batch, rank, size):
    return position + batch * rank // size, position + batch * (rank + 1) // size


my_words = Exercise(
    kind="a pair (first, last)",
    cases=[
        Case(
            args=(4, 10, 4, 1, 3),
            answer=(5, 6),
            mistakes=[
                Mistake(
                    places_in_the_batch,
                    "that is the part of the batch; it begins at position 4 of the epoch",
                ),
                Mistake(
                    parts_rounded_up,
                    "three ranks share 4 words as 1, 1 and 2; word 6 belongs to rank 2",
                ),
            ],
            hint="three ranks share the words 4 to 7 as 4, 5 and 6 to 7; you have {answer}",
        ),
        Case(
            args=(8, 10, 4, 1, 2),
            answer=(9, 10),
            mistakes=[
                Mistake(
                    beyond_the_last_word,
                    "the epoch has 10 words, so only words 8 and 9 are left for the last step",
                ),
            ],
            hint="words 8 and 9 are left, one for each rank; you have {answer}",
        ),
    ],
)

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
