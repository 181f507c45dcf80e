"""Exercises of 19_sharded_on_ranks."""

from exercises import Case, Exercise, Mistake


def as_often_as_they_come(batches, size):
    asked = [[] for _ in range(size)]
    for ids in batches:
        for number in sorted(ids):
            asked[number % size].append(number)
    return asked


def once_for_all_ranks(batches, size):
    every = sorted({number for ids in batches for number in ids})
    return [[number for number in every if number % size == owner] for owner in range(size)]


def what_each_rank_wants(batches, size):
    return [sorted(set(ids)) for ids in batches]


def consecutive_ranges(batches, size):
    longest = -(-(max(map(max, batches)) + 1) // size)
    asked = [[] for _ in range(size)]
    for ids in batches:
        for number in sorted(set(ids)):
            asked[number // longest].append(number)
    return asked


def two_ranks_always(batches, size):
    asked = [[] for _ in range(size)]
    for ids in batches:
        for number in sorted(set(ids)):
            asked[number % 2].append(number)
    return asked


asked_of_each = Exercise(
    cases=[
        Case(
            args=([[7, 2, 7, 6], [2, 9, 9, 1]], 2),
            answer=[[2, 6, 2], [7, 1, 9]],
            mistakes=[
                Mistake(as_often_as_they_come, "rank 0 has id 7 twice in its batch and asks once"),
                Mistake(
                    once_for_all_ranks,
                    "rank 0 and rank 1 both want row 2; neither knows of the other, so its owner "
                    "is asked twice",
                ),
                Mistake(
                    what_each_rank_wants,
                    "that is what each rank asks for; the answer is what each is asked for",
                ),
                Mistake(
                    consecutive_ranges,
                    "that deals ranges of ids; here id belongs to rank id % size",
                ),
            ],
        ),
        Case(
            args=([[5, 3], [8], [4, 3]], 3),
            answer=[[3, 3], [4], [5, 8]],
            mistakes=[
                Mistake(two_ranks_always, "there are three ranks here: id % size, not id % 2"),
            ],
        ),
    ],
    hint="batches 7 2 7 6 and 2 9 9 1: rank 0 is asked for 2 and 6 by itself, then for 2 by rank "
    "1; you have {answer}",
)


def foreign_rows(batches, size):
    return sum(n % size != rank for rank, ids in enumerate(batches) for n in set(ids))


def own_rows_too(batches, dim, size):
    return sum(len(set(ids)) for ids in batches) * (4 + 8 * dim)


def each_time(batches, dim, size):
    foreign = sum(n % size != rank for rank, ids in enumerate(batches) for n in ids)
    return foreign * (4 + 8 * dim)


bytes_for_the_table = Exercise(
    cases=[
        Case(
            args=([[7, 2, 7, 4], [2, 9, 9, 5]], 8, 2),
            answer=136,
            mistakes=[
                Mistake(own_rows_too, "rows 2 and 4 are rank 0's own: they do not travel"),
                Mistake(each_time, "rank 0 asks for row 7 once, although it is there twice"),
                Mistake(
                    lambda batches, dim, size: foreign_rows(batches, size) * (4 + 4 * dim),
                    "the rows come, and their gradients go: two times dim floats",
                ),
                Mistake(
                    lambda batches, dim, size: foreign_rows(batches, size) * 8 * dim,
                    "the ids travel, too: 4 bytes each",
                ),
                Mistake(
                    lambda batches, dim, size: foreign_rows(batches, size) * (8 + 8 * dim),
                    "the ids travel once: the gradients come in the order of the ids, which the "
                    "owner still has",
                ),
                Mistake(
                    lambda batches, dim, size: foreign_rows(batches, size) * (4 + 2 * dim),
                    "a float32 has 4 bytes",
                ),
            ],
        ),
        Case(
            args=([[0, 1, 2], [3, 4, 6], [7]], 2, 3),
            answer=100,
            mistakes=[
                Mistake(
                    lambda batches, dim, size: (
                        sum(n % 2 != rank for rank, ids in enumerate(batches) for n in set(ids))
                        * (4 + 8 * dim)
                    ),
                    "there are three ranks here: id belongs to rank id % size",
                ),
            ],
        ),
    ],
    hint="row 7 goes to rank 0 and row 2 to rank 1, each as an id, a row and a gradient; you have "
    "{answer}",
)
