"""Exercises of 25_train_your_own."""

import math

import numpy as np

from exercises import Case, Exercise, Mistake

WORDS = ["the", "cat", "kitten", "dog", "car"]
VECTORS = np.array([[10.0, 10.0], [1.0, 0.0], [3.0, 0.3], [0.8, 0.5], [0.0, 1.0]])


def ranked(values, word, n):
    """The n words with the greatest values, without the word itself."""
    order = [int(i) for i in np.argsort(-np.asarray(values)) if WORDS[i] != word]
    return [WORDS[i] for i in order[:n]]


def cosines(vectors, words, word):
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return directions @ directions[words.index(word)]


def by_dot_product(vectors, words, word, n):
    return ranked(vectors @ vectors[words.index(word)], word, n)


def by_distance(vectors, words, word, n):
    return ranked(-np.linalg.norm(vectors - vectors[words.index(word)], axis=1), word, n)


def with_the_word_itself(vectors, words, word, n):
    return [words[i] for i in np.argsort(-cosines(vectors, words, word))[:n]]


def the_least_similar(vectors, words, word, n):
    return ranked(-cosines(vectors, words, word), word, n)


def the_nearest_last(vectors, words, word, n):
    return ranked(cosines(vectors, words, word), word, n)[::-1]


nearest_words = Exercise(
    kind="a list of words",
    cases=[
        Case(
            args=(VECTORS, WORDS, "cat", 1),
            answer=["kitten"],
            mistakes=[
                Mistake(
                    by_dot_product,
                    '"the" has the longest vector, so its dot product is the greatest; divide by both lengths',
                ),
                Mistake(
                    by_distance,
                    '"dog" is nearer as a point, but "kitten" lies in the same direction; compare directions',
                ),
                Mistake(with_the_word_itself, "every word is nearest to itself: leave it out"),
                Mistake(the_least_similar, "the greatest cosine is the nearest; you have the smallest"),
            ],
        ),
        Case(
            args=(VECTORS, WORDS, "cat", 2),
            answer=["kitten", "dog"],
            mistakes=[Mistake(the_nearest_last, "the nearest word comes first")],
        ),
    ],
    hint="the words with the greatest cosine, without the word itself; you have {answer}",
)


jobs_needed = Exercise(
    cases=[
        Case(
            args=(1000, 20, 8, 2),
            answer=100,
            mistakes=[
                Mistake(
                    lambda training, limit, start, notice: math.ceil(training / limit),
                    "a job does not train all the time: it starts first, and is stopped before its limit",
                ),
                Mistake(
                    lambda training, limit, start, notice: math.ceil((training + start + notice) / limit),
                    "every job has to start again and is stopped early, not only the first",
                ),
                Mistake(
                    lambda training, limit, start, notice: math.ceil(training / (limit - start)),
                    "the signal comes before the limit: those minutes are gone as well",
                ),
            ],
        ),
        Case(
            args=(25, 20, 8, 2),
            answer=3,
            mistakes=[
                Mistake(
                    lambda training, limit, start, notice: training // (limit - start - notice),
                    "what is left after two whole jobs needs one more",
                ),
                Mistake(
                    lambda training, limit, start, notice: training / (limit - start - notice),
                    "the queue knows only whole jobs",
                ),
            ],
        ),
    ],
    hint="of 20 minutes a job trains 10; you have {answer} jobs",
)
