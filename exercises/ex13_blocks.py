"""Exercises of 13_blocks."""

from exercises import Case, Exercise, Mistake


def first_that_reaches(corner, useful, rows):
    return next((n for n in range(1, 1001) if 6 * useful(n) / (8 * rows(n)) >= corner), None)


def useful(tokens):
    return tokens * (10 + 22)


def rows(tokens):
    return tokens + tokens + 10 + 22


def without_the_edges(corner):
    return first_that_reaches(corner, useful, lambda n: n + n + 22)


def one_table(corner):
    return first_that_reaches(corner, useful, lambda n: n + 10 + 22)


def white_squares(corner):
    return first_that_reaches(corner, lambda n: n * (n + 10 + 22), rows)


def read_only(corner):
    return first_that_reaches(corner / 2, useful, rows)


def rounded_down(corner):
    return int(16 * corner / (12 - corner))


def above(corner):
    return first_that_reaches(corner + 1e-9, useful, rows)


shortest_block = Exercise(
    cases=[
        Case(
            args=(7.0,),
            answer=23,
            mistakes=[
                Mistake(without_the_edges, "16 forgets the 5 words before the block and the 5 after it"),
                Mistake(one_table, "14 counts the words once; as centers and as contexts they are rows of two tables"),
                Mistake(white_squares, "12 counts the white squares; a center has 10 near words and 22 random ones"),
                Mistake(read_only, "7 forgets that each row is written back as well"),
                Mistake(rounded_down, "22 is too short: 6.95 flop/byte"),
            ],
        ),
        Case(
            args=(4.0,),
            answer=8,
            mistakes=[Mistake(above, "9 is one word too long: 8 words have exactly 4 flop/byte, which is enough")],
        ),
    ],
    hint="16 words have 6 flop/byte and 32 have 8; you have {answer}",
)
