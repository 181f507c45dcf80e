"""Exercises of 18_huge_embeddings."""

import numpy as np

from exercises import Case, Exercise, Mistake


def old_accumulator(value, accumulator, gradient, lr):
    return value - lr * gradient / accumulator**0.5, accumulator + gradient**2


def not_squared(value, accumulator, gradient, lr):
    return value - lr * gradient / (accumulator + gradient) ** 0.5, accumulator + gradient


def no_root(value, accumulator, gradient, lr):
    return value - lr * gradient / (accumulator + gradient**2), accumulator + gradient**2


def uphill(value, accumulator, gradient, lr):
    return value + lr * gradient / (accumulator + gradient**2) ** 0.5, accumulator + gradient**2


adagrad_number = Exercise(
    cases=[
        Case(
            args=(1.0, 5.0, 2.0, 0.3),
            answer=(0.8, 9.0),
            mistakes=[
                Mistake(
                    old_accumulator,
                    "first add the square of the gradient; divide by the root of the new accumulator",
                ),
                Mistake(not_squared, "the accumulator takes the square of the gradient: 5 becomes 9"),
                Mistake(no_root, "divide by the root of the accumulator, 3, and not by 9"),
                Mistake(uphill, "the gradient points to a larger loss: subtract"),
                Mistake(
                    lambda value, accumulator, gradient, lr: uphill(0, accumulator, gradient, lr),
                    "that is the step itself; take it from the value",
                ),
            ],
        ),
    ],
    hint="(0.8, 9): the accumulator is 5 + 2 * 2, the value 1 - 0.3 * 2 / 3; you have {answer}",
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
