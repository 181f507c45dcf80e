"""Exercises of 02_data_prep."""

import math
from collections import Counter

import numpy as np

from exercises import ANYTHING, Case, Exercise, Mistake


def probabilities(counts, t):
    ratio = t / (counts / counts.sum())
    return np.minimum(1, np.sqrt(ratio) + ratio)


def share_without_limit(counts, t):
    f = counts / counts.sum()
    return f @ (np.sqrt(t / f) + t / f)


def share_by_the_paper(counts, t):
    f = counts / counts.sum()
    return f @ np.minimum(1, np.sqrt(t / f))


def share_of_raw_counts(counts, t):
    return counts @ np.minimum(1, np.sqrt(t / counts) + t / counts) / counts.sum()


kept_share = Exercise(
    cases=[
        Case(
            args=(np.array([80, 20]), 0.1),
            answer=0.5828427,
            mistakes=[
                Mistake(
                    share_without_limit,
                    "a probability is at most 1: the word with 20 tokens would be kept 1.2 times",
                ),
                Mistake(
                    share_by_the_paper,
                    "that is the paper's formula; word2vec.c's adds t / f to the square root",
                ),
                Mistake(
                    lambda counts, t: probabilities(counts, t).mean(),
                    "that is the mean over the words; a frequent word has more tokens, weigh it by its share",
                ),
                Mistake(
                    lambda counts, t: counts @ probabilities(counts, t),
                    "that is the number of tokens kept; a share is between 0 and 1",
                ),
                Mistake(
                    share_of_raw_counts,
                    "f is the word's share of all tokens, not its count",
                ),
                Mistake(probabilities, "those are the words' own probabilities; sum them up, weighed by share"),
                Mistake(
                    lambda counts, t: 1 - counts @ probabilities(counts, t) / counts.sum(),
                    "that is the share that is dropped; kept is one minus that",
                ),
            ],
        ),
        Case(
            args=(np.array([5, 5, 5, 5]), 0.01),
            answer=0.24,
            hint="four words of 25 % each with t = 0.01 keep sqrt(0.04) + 0.04 = 0.24; you have {answer}",
        ),
    ],
    hint="counts 80 and 20 with t = 0.1 keep 0.8 * 0.47855 + 0.2 * 1 = 0.58284; you have {answer}",
)


def odd_one_dropped(counters):
    in_pairs = counters[: len(counters) // 2 * 2] or counters
    return sum(in_pairs, Counter()), ANYTHING


def one_after_the_other(counters):
    return sum(counters, Counter()), len(counters) - 1


def rounds_rounded_down(counters):
    return sum(counters, Counter()), int(math.log2(len(counters)))


def one_round_too_many(counters):
    return ANYTHING, 0 if len(counters) == 1 else int(math.log2(len(counters))) + 1


tree_merge = Exercise(
    cases=[
        Case(
            args=([Counter("aab")],),
            answer=(Counter("aab"), 0),
            mistakes=[
                Mistake(
                    lambda counters: (ANYTHING, 1),
                    "a single Counter is the sum already, after 0 rounds",
                ),
            ],
        ),
        Case(
            args=([Counter("a"), Counter("b"), Counter("c"), Counter("d"), Counter("ea")],),
            answer=(Counter("abcdea"), 3),
            mistakes=[
                Mistake(
                    odd_one_dropped,
                    "one of 5 counters has no partner in the first round; it waits for the next "
                    "one, and is not dropped",
                ),
                Mistake(
                    one_after_the_other,
                    "4 rounds are one addition after the other; the pairs of a round are added at "
                    "the same time",
                ),
                Mistake(
                    rounds_rounded_down,
                    "5 counters leave 3, then 2, then 1, that is 3 rounds; "
                    "the odd one needs a round, too",
                ),
            ],
        ),
        Case(
            args=([Counter(letter) for letter in "abcdefgh"],),
            answer=(Counter("abcdefgh"), 3),
            mistakes=[
                Mistake(one_round_too_many, "8 counters leave 4, 2, 1, that is 3 rounds"),
            ],
        ),
    ],
    hint="return the sum of all counters and the number of rounds of adding in pairs; "
    "you have {answer}",
)

rank_of_token = Exercise(
    cases=[
        Case(
            args=(7, 10, 3),
            answer=2,
            mistakes=[
                Mistake(
                    lambda i, n, size: i // -(-n // size),
                    "the shards of 10 tokens on 3 ranks have 3, 3 and 4 tokens, not 4, 4 and 2",
                ),
                Mistake(
                    lambda i, n, size: i * size / n,
                    "a rank is a whole number: round, but think first of where a shard begins",
                ),
                Mistake(
                    lambda i, n, size: [n * r // size for r in range(size)],
                    "that is where the shards begin; return the one rank whose shard has token i",
                ),
            ],
        ),
        Case(
            args=(3, 10, 3),
            answer=1,
            mistakes=[
                Mistake(
                    lambda i, n, size: i * size // n,
                    "of 10 tokens on 3 ranks rank 0 has numbers 0 to 2, so number 3 is on rank 1: "
                    "it begins at 10 / 3, rounded down",
                ),
            ],
        ),
        Case(
            args=(10, 11, 4),
            answer=3,
            mistakes=[
                Mistake(
                    lambda i, n, size: i // (n // size),
                    "11 tokens do not make four shards of 2; the last token is on the last rank, 3",
                ),
                Mistake(
                    lambda i, n, size: (i + 1) * size // n,
                    "the last of 11 tokens gets rank 4, which is not there: "
                    "round (i + 1) * size / n up, and then take 1 off",
                ),
            ],
        ),
        Case(
            args=(1, 2, 5),
            answer=4,
            hint="5 ranks share 2 tokens: rank 2 has the first, rank 4 the second; you have {answer}",
        ),
    ],
    hint="10 tokens on 3 ranks: 0 to 2 on rank 0, 3 to 5 on rank 1, 6 to 9 on rank 2; you have {answer}",
)
