"""Exercises of 18_huge_embeddings."""

from exercises import Case, Exercise, Mistake


def accumulators_forgotten(rows, dim, accumulators, servers):
    return rows * dim * 4 * accumulators // servers


def all_servers_together(rows, dim, accumulators, servers):
    return rows * dim * 4 * (1 + accumulators)


def one_byte_a_number(rows, dim, accumulators, servers):
    return rows * dim * (1 + accumulators) // servers


def rows_cut(rows, dim, accumulators, servers):
    return rows * dim * 4 * (1 + accumulators) // servers


bytes_of_server = Exercise(
    cases=[
        Case(
            args=(1000, 8, 1, 4),
            answer=16000,
            mistakes=[
                Mistake(
                    accumulators_forgotten,
                    "Adagrad keeps an accumulator beside every number, so each row is there twice",
                ),
                Mistake(all_servers_together, "that is all servers together; each has its share"),
                Mistake(one_byte_a_number, "a float32 has four bytes"),
            ],
        ),
        Case(
            args=(10, 2, 0, 4),
            answer=24,
            mistakes=[
                Mistake(
                    rows_cut,
                    "10 rows on 4 servers are 3, 3, 2 and 2; "
                    "the largest shard decides, and a row is not cut",
                ),
            ],
        ),
    ],
    hint="rows of the largest shard, times dim, times 4 bytes, times one and the accumulators; you "
    "have {answer}",
)

server_of_row = Exercise(
    cases=[
        Case(
            args=(10, 11, 3),
            answer=2,
            mistakes=[
                Mistake(
                    lambda row, rows, servers: row % servers,
                    "that deals the rows in turn, but a shard is a run of consecutive rows",
                ),
                Mistake(
                    lambda row, rows, servers: row // (rows // servers),
                    "3 servers have the numbers 0 to 2; the first shards of 11 rows are longer "
                    "than 11 // 3",
                ),
            ],
        ),
        Case(
            args=(3, 11, 3),
            answer=0,
            mistakes=[
                Mistake(
                    lambda row, rows, servers: min(row // (rows // servers), servers - 1),
                    "11 rows make shards of [4, 4, 3], so row 3 is still on server 0",
                ),
            ],
        ),
        Case(args=(4, 11, 3), answer=1),
        Case(
            args=(8, 10, 4),
            answer=3,
            mistakes=[
                Mistake(
                    lambda row, rows, servers: row // -(-rows // servers),
                    "10 rows make shards of [3, 3, 2, 2]; only the first ones are longer",
                ),
            ],
        ),
        Case(args=(5, 6, 2), answer=1),
    ],
    hint="11 rows on 3 servers are shards of [4, 4, 3], 10 rows on 4 servers [3, 3, 2, 2]; "
    "you say {answer}",
)
