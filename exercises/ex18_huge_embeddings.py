"""Exercises of 18_huge_embeddings."""

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


def in_lengths(placed, lengths):
    ends = np.cumsum(lengths)
    return np.bincount(np.searchsorted(ends, placed, side="right"), minlength=len(lengths))


def repeated(ids, rows, servers, factor):
    return in_lengths(np.array(ids) * factor % rows, [rows // servers] * servers)


def short_shards(ids, rows, servers, factor):
    on_server = np.unique(np.array(ids) * factor % rows) // (rows // servers)
    return np.bincount(np.minimum(on_server, servers - 1), minlength=servers)


def long_shards(ids, rows, servers, factor):
    on_server = np.unique(np.array(ids) * factor % rows) // -(-rows // servers)
    return np.bincount(on_server, minlength=servers)


def not_scattered(ids, rows, servers, factor):
    return long_shards(ids, rows, servers, 1)


def beyond_the_end(ids, rows, servers, factor):
    on_server = np.unique(np.array(ids) * factor) // -(-rows // servers)
    return np.bincount(np.minimum(on_server, servers - 1), minlength=servers)


rows_sent = Exercise(
    cases=[
        Case(
            args=([3, 3, 7], 10, 2, 1),
            answer=[1, 1],
            mistakes=[
                Mistake(repeated, "a worker pulls each different row once, so row 3 counts once"),
            ],
        ),
        Case(
            args=([0, 1, 2, 3], 8, 2, 3),
            answer=[3, 1],
            mistakes=[
                Mistake(not_scattered, "id i is not in row i, but in row i * factor % rows"),
                Mistake(
                    beyond_the_end,
                    "8 rows have the numbers 0 to 7; id 3 is in row 3 * 3 % 8, which is 1",
                ),
            ],
        ),
        Case(
            args=([3, 4, 8, 10], 11, 3, 1),
            answer=[1, 1, 2],
            mistakes=[
                Mistake(short_shards, "11 rows make shards of [4, 4, 3], so row 3 is on server 0"),
            ],
        ),
        Case(
            args=([6, 8], 10, 4, 1),
            answer=[0, 0, 1, 1],
            mistakes=[
                Mistake(
                    long_shards,
                    "10 rows make shards of [3, 3, 2, 2]; only the first ones are longer",
                ),
            ],
        ),
    ],
    hint="11 rows on 3 servers are shards of [4, 4, 3], 10 rows on 4 servers [3, 3, 2, 2]; "
    "you say {answer}",
)
