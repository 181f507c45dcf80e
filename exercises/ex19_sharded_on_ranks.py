"""Exercises of 19_sharded_on_ranks."""

from exercises import Case, Exercise, Mistake


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
                    "the ids travel once: the gradients come in the order of the ids, which the owner still has",
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
                        sum(n % 2 != rank for rank, ids in enumerate(batches) for n in set(ids)) * (4 + 8 * dim)
                    ),
                    "there are three ranks here: id belongs to rank id % size",
                ),
            ],
        ),
    ],
    hint="row 7 goes to rank 0 and row 2 to rank 1, each as an id, a row and a gradient; you have {answer}",
)
