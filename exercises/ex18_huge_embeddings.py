"""Exercises of 18_huge_embeddings."""

import math

import numpy as np

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

pulled_and_pushed = Exercise(
    cases=[
        Case(
            args=(np.array([7, 2, 7, 4, 7]), 10),
            answer=240,
            mistakes=[
                Mistake(
                    lambda ids, dim: 2 * len(ids) * dim * 4,
                    "row 7 comes three times, but is pulled once",
                ),
                Mistake(
                    lambda ids, dim: len(set(ids)) * dim * 4,
                    "that is one way: the rows come, and their gradients go",
                ),
                Mistake(lambda ids, dim: 2 * len(set(ids)) * dim, "a float32 has 4 bytes"),
                Mistake(
                    lambda ids, dim: 2 * len(set(ids)) * dim * 8,
                    "a float32 has 4 bytes, not 8",
                ),
            ],
        ),
    ],
    hint="3 different rows of 10 floats, there and back: 240 bytes; you have {answer}",
)


def one_byte_each(rows, dim, accumulators, server_bytes):
    return math.ceil(rows * dim * (1 + accumulators) / (0.8 * server_bytes))


def table_alone(rows, dim, accumulators, server_bytes):
    return math.ceil(rows * dim * 4 / (0.8 * server_bytes))


def filled_to_the_brim(rows, dim, accumulators, server_bytes):
    return math.ceil(rows * dim * 4 * (1 + accumulators) / server_bytes)


def part_of_a_server(rows, dim, accumulators, server_bytes):
    return rows * dim * 4 * (1 + accumulators) / (0.8 * server_bytes)


def always_one_more(rows, dim, accumulators, server_bytes):
    return int(rows * dim * 4 * (1 + accumulators) / (0.8 * server_bytes)) + 1


def one_accumulator(rows, dim, accumulators, server_bytes):
    return math.ceil(rows * dim * 4 * 2 / (0.8 * server_bytes))


servers_needed = Exercise(
    cases=[
        Case(
            args=(1000, 16, 1, 50000),
            answer=4,
            mistakes=[
                Mistake(one_byte_each, "a float32 has 4 bytes"),
                Mistake(
                    table_alone,
                    "an accumulator for each number takes as much memory as the table",
                ),
                Mistake(
                    filled_to_the_brim,
                    "128,000 bytes in servers of 50,000: 3 would do if they could be filled to the "
                    "brim, which they cannot",
                ),
                Mistake(part_of_a_server, "a number of servers is whole; round up"),
            ],
        ),
        Case(
            args=(1000, 16, 1, 40000),
            answer=4,
            mistakes=[
                Mistake(
                    always_one_more,
                    "128,000 bytes fit exactly into 4 servers of 40,000 (0.8 of each); you take 5",
                ),
            ],
        ),
        Case(
            args=(1000, 16, 2, 40000),
            answer=6,
            mistakes=[
                Mistake(
                    one_accumulator,
                    "with two accumulators there are three numbers for each of "
                    "the table, 192,000 bytes",
                ),
            ],
            hint="with two accumulators 192,000 bytes need 6 servers of 40,000; you have {answer}",
        ),
    ],
    hint="128,000 bytes in servers of 50,000 need 4; you have {answer}",
)
