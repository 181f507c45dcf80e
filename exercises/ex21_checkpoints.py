"""Exercises of 21_checkpoints."""

from exercises import Case, Exercise, Mistake

share_spent = Exercise(
    cases=[
        Case(
            args=(500, 10, 5000),
            answer=0.07,
            mistakes=[
                Mistake(
                    lambda interval, C, M: C / interval + interval / M,
                    "a failure comes on average in the middle of an interval: half of it is lost",
                ),
                Mistake(
                    lambda interval, C, M: C / interval,
                    "these are the checkpoints; add the work that is done twice",
                ),
                Mistake(
                    lambda interval, C, M: interval / (2 * M),
                    "this is the work that is done twice; add the checkpoints",
                ),
                Mistake(
                    lambda interval, C, M: C + interval / 2,
                    "these are seconds; checkpoints come every interval, failures every M",
                ),
            ],
        ),
    ],
    hint="10 s in every 500 s, and 250 s in every 5,000 s, are 0.07; you have {answer}",
)


def places_in_the_batch(position, n, batch, rank, size):
    return batch * rank // size, batch * (rank + 1) // size


def parts_rounded_up(position, n, batch, rank, size):
    first = position + batch * rank // size
    return first, first - (-batch // size)


def first_ranks_get_more(position, n, batch, rank, size):
    each, more = divmod(min(batch, n - position), size)
    first = position + rank * each + min(rank, more)
    return first, first + each + (rank < more)


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
                Mistake(
                    first_ranks_get_more,
                    "the beginnings are rounded down, so the last rank gets the odd word: 1, 1 and 2",
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
