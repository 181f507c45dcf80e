"""Exercises of 18_huge_embeddings."""

import math

import numpy as np

from exercises import ANYTHING, Case, Exercise, Mistake

NUMBER = 4  # bytes


def with_parts(servers=ANYTHING, sent=ANYTHING):
    return lambda *plan: tuple(part(*plan) if callable(part) else part for part in (servers, sent))


def split_rows(rows, dim, ids, memory, kept):
    return math.ceil(rows * (dim + kept) * NUMBER / memory)


def without_kept(rows, dim, ids, memory, kept):
    return math.ceil(rows / (memory // (NUMBER * dim)))


def always_adagrad(rows, dim, ids, memory, kept):
    return math.ceil(rows / (memory // (NUMBER * 2 * dim)))


def whole_servers(rows, dim, ids, memory, kept):
    return rows // (memory // (NUMBER * (dim + kept)))


def repeated_rows(rows, dim, ids, memory, kept):
    return 2 * len(ids) * NUMBER * (dim + 1)


def one_way(rows, dim, ids, memory, kept):
    return len(set(ids)) * NUMBER * (dim + 1)


def without_row_numbers(rows, dim, ids, memory, kept):
    return 2 * len(set(ids)) * NUMBER * dim


def kept_sent(rows, dim, ids, memory, kept):
    return 2 * len(set(ids)) * NUMBER * (dim + kept + 1)


plan_table = Exercise(
    cases=[
        Case(
            args=(10, 2, [3, 3, 7], 80, 2),
            answer=(2, 48),
            mistakes=[
                Mistake(with_parts(servers=without_kept), "a row takes 8 bytes in the table, and 8 of accumulators"),
                Mistake(with_parts(sent=repeated_rows), "a worker pulls each different row once, so row 3 counts once"),
                Mistake(with_parts(sent=one_way), "rows are pulled, and then their gradients are pushed"),
                Mistake(with_parts(sent=without_row_numbers), "each row travels with its number, of 4 bytes"),
                Mistake(with_parts(sent=kept_sent), "accumulators stay on their servers: no worker asks for them"),
            ],
        ),
        Case(
            args=(19, 2, [0], 62, 2),
            answer=(7, 24),
            mistakes=[
                Mistake(
                    with_parts(servers=split_rows),
                    "62 bytes hold 3 rows of 16 bytes, and no part of a fourth",
                ),
                Mistake(
                    with_parts(servers=whole_servers),
                    "six servers hold 18 rows; the last one needs one more",
                ),
            ],
        ),
        Case(
            args=(10, 128, [1, 2], 1032, 1),
            answer=(5, 2064),
            mistakes=[
                Mistake(
                    with_parts(servers=always_adagrad),
                    "row-wise Adagrad keeps one number for a row: 129 in all, and not 256",
                ),
            ],
        ),
    ],
    hint="(2, 48): 5 rows of 16 bytes fit into 80; 2 different rows, there and back; you have {answer}",
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
    hint="11 rows on 3 servers are shards of [4, 4, 3], 10 rows on 4 servers [3, 3, 2, 2]; you say {answer}",
)
