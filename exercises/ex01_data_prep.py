"""Exercises of 01_data_prep."""

import math
from collections import Counter

from exercises import ANYTHING, Case, Exercise, Mistake


def size_words_kept(counts, size):
    return sum(n for _, n in counts.most_common(size)) / sum(counts.values())


coverage_of = Exercise(
    cases=[
        Case(
            args=(Counter("aaaabbbccd"), 3),
            answer=0.7,
            mistakes=[
                Mistake(
                    size_words_kept,
                    "UNK takes one of the rows, so size=3 leaves room for two words",
                ),
                Mistake(
                    lambda counts, size: sum(n for _, n in counts.most_common(size - 1)),
                    "that is the number of words covered; a share is between 0 and 1",
                ),
                Mistake(
                    lambda counts, size: (size - 1) / len(counts),
                    "that is a share of the different words; count each occurrence",
                ),
            ],
        ),
    ],
    hint="of aaaabbbccd, size=3 covers the 4 a and the 3 b, 0.7 of the text; you have {answer}",
)

paper_keep = Exercise(
    cases=[
        Case(
            args=(0.04, 1e-4),
            answer=0.05,
            mistakes=[
                Mistake(
                    lambda f, t: (t / f) ** 0.5 + t / f,
                    "that is the formula of word2vec.c; the paper has the square root alone",
                ),
                Mistake(
                    lambda f, t: 1 - (t / f) ** 0.5,
                    "that is the probability to drop an occurrence; keep is one minus that",
                ),
                Mistake(lambda f, t: t / f, "0.0025 is t / f; the paper takes its square root"),
                Mistake(
                    lambda f, t: (f / t) ** 0.5,
                    "the fraction is upside down, a probability is at most 1",
                ),
            ],
        ),
        Case(
            args=(1e-5, 1e-4),
            answer=1,
            mistakes=[
                Mistake(
                    lambda f, t: (t / f) ** 0.5,
                    "a rare word gets 3.16, but a probability is at most 1",
                ),
            ],
            hint="a rare word is always kept, with probability 1; you have {answer}",
        ),
    ],
    hint="share 0.04 and threshold 1e-4 give sqrt(0.0025) = 0.05; you have {answer}",
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

shard_lengths = Exercise(
    cases=[
        Case(
            args=(10, 3),
            answer=[3, 3, 4],
            mistakes=[
                Mistake(
                    lambda n, size: [n // size + (r < n % size) for r in range(size)],
                    "the lengths are right, but not their order; "
                    "shard r ends at token n * (r + 1) // size",
                ),
                Mistake(
                    lambda n, size: [n // size] * size,
                    "3 shards of 3 tokens leave one of the 10 tokens out",
                ),
                Mistake(
                    lambda n, size: [n / size] * size,
                    "a shard has whole tokens, and here they cannot all be equally long",
                ),
                Mistake(
                    lambda n, size: [n * r // size for r in range(size)],
                    "that is where the shards begin; the length is where it ends "
                    "minus where it begins",
                ),
            ],
        ),
        Case(args=(8, 2), answer=[4, 4]),
    ],
    hint="shard r of 3 goes from token 10 * r // 3 to 10 * (r + 1) // 3; you have {answer}",
)
