"""Exercises of 03_skipgram_pairs."""

import numpy as np

from exercises import Case, Exercise, Mistake


def each_pair_once(n, window):
    return sum((n - d) * (window - d + 1) / window for d in range(1, window + 1))


def negative_places(n, window):
    return sum(2 * (n - d) * (window - d + 1) / window for d in range(1, window + 1))


expected_pairs = Exercise(
    cases=[
        Case(
            args=(100, 5),
            answer=586,
            mistakes=[
                Mistake(
                    lambda n, window: n * (window + 1),
                    "600 forgets that a window stops at the ends of the text",
                ),
                Mistake(
                    lambda n, window: sum(2 * (n - d) for d in range(1, window + 1)),
                    "970 forgets that a window shrinks, so distance d has a probability",
                ),
                Mistake(
                    lambda n, window: 2 * n * window,
                    "1000 forgets that a window shrinks, and that it stops at the ends of the text",
                ),
                Mistake(
                    each_pair_once,
                    "293 counts each pair of places once; each word can be the center",
                ),
            ],
        ),
        Case(
            args=(10, 1),
            answer=18,
            hint="10 words with window=1 give 18 pairs; you have {answer}",
        ),
        Case(
            args=(3, 5),
            answer=5.6,
            mistakes=[
                Mistake(
                    negative_places,
                    "a text of 3 words has no pairs at distances 3, 4 and 5; 2 * (n - d) is negative at 4 and 5",
                ),
            ],
            hint="3 words with window=5 give 5.6 pairs; you have {answer}",
        ),
    ],
    hint="add up 2 * (n - d) * (probability of distance d); n=100, window=5 gave {answer}",
)


def sides(*pairs):
    """Return (centers, contexts), as an answer has them."""
    return tuple(zip(*pairs))


def sorted_pairs(centers, contexts):
    return sorted(zip(centers, contexts, strict=True))


def forward_only(sentences, window):
    return sentences[0][:-1], sentences[0][1:]


def word_with_itself(sentences, window):
    words = sentences[0]
    return sides(*[(a, b) for a in words for b in words if abs(a - b) <= window])


def across_sentences(sentences, window):
    text = np.concatenate(sentences)
    return [*text[:-1], *text[1:]], [*text[1:], *text[:-1]]


def first_sentence_only(sentences, window):
    text = sentences[0]
    return [*text[:-1], *text[1:]], [*text[1:], *text[:-1]]


sentence_pairs = Exercise(
    kind="a pair (centers, contexts)",
    in_one_order=sorted_pairs,
    cases=[
        Case(
            args=([np.array([0, 1, 2])], 1),
            answer=sides((0, 1), (1, 0), (1, 2), (2, 1)),
            mistakes=[
                Mistake(forward_only, "each pair comes in both directions, (0, 1) and (1, 0)"),
                Mistake(word_with_itself, "a word is not its own context"),
            ],
            hint="the sentence 0, 1, 2 with window=1 gives (0, 1), (1, 0), (1, 2) and (2, 1); you "
            "have {answer}",
        ),
        Case(
            args=([np.array([0, 1]), np.array([7]), np.array([8, 9])], 1),
            answer=sides((0, 1), (1, 0), (8, 9), (9, 8)),
            mistakes=[
                Mistake(
                    across_sentences,
                    "the pair (1, 7) is too much, its words stand in different sentences",
                ),
                Mistake(
                    first_sentence_only,
                    "the pair (8, 9) is missing; go through all sentences",
                ),
            ],
        ),
        Case(
            args=([np.array([0, 1, 2, 3])], 2),
            answer=sides(
                (0, 1), (0, 2), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (3, 1), (3, 2)
            ),
            hint="the sentence 0, 1, 2, 3 with window=2 gives all pairs but (0, 3) and (3, 0); you "
            "have {answer}",
        ),
    ],
    hint="the sentences [0, 1], [7] and [8, 9] give (0, 1), (1, 0), (8, 9) and (9, 8); "
    "you have {answer}",
)
