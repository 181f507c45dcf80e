"""Exercises of 13_blocks."""

import numpy as np

from exercises import Case, Exercise, Mistake

LABELS = np.array([1.0, 0.0, 0.0])
WEIGHTS = np.array([[1.0, 0.5, 1.5], [0.0, 1.0, 1.5]])


def near():
    """All logits are within 6."""
    centers = np.array([[1.0, 0.0], [0.5, 2.0]])
    return centers, np.array([[0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]), LABELS, WEIGHTS


def far():
    """The logits of the first center are 8, -8 and 0."""
    centers = np.array([[8.0, 0.0], [0.5, 2.0]])
    return centers, np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 1.0]]), LABELS, WEIGHTS


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def bounded(logits, error):
    return np.where(abs(logits) < 6, error, 0)


def products(centers, contexts, labels, weights, error_of=None, inside=bounded):
    logits = centers @ contexts.T
    error = error_of(logits, labels, weights) if error_of else weights * (labels - sigmoid(logits))
    error = inside(logits, error)
    return error @ contexts, error.T @ centers


def other_order(*given):
    return products(*given)[::-1]


def turned_round(*given):
    return products(*given, error_of=lambda logits, labels, weights: weights * (sigmoid(logits) - labels))


def all_squares_alike(*given):
    return products(*given, error_of=lambda logits, labels, weights: labels - sigmoid(logits))


def no_sigmoid(*given):
    return products(*given, error_of=lambda logits, labels, weights: weights * (labels - logits))


def weighted_label(*given):
    return products(*given, error_of=lambda logits, labels, weights: weights * labels - sigmoid(logits))


def moved_centers(centers, contexts, labels, weights):
    of_centers, _ = products(centers, contexts, labels, weights)
    error = bounded(centers @ contexts.T, weights * (labels - sigmoid(centers @ contexts.T)))
    return of_centers, error.T @ (centers + of_centers)


def no_bound(*given):
    return products(*given, inside=lambda logits, error: error)


def one_bound(*given):
    return products(*given, inside=lambda logits, error: np.where(logits < 6, error, 0))


def cut_logits(*given):
    def error_of(logits, labels, weights):
        return weights * (labels - sigmoid(np.clip(logits, -6, 6)))

    return products(*given, error_of=error_of, inside=lambda logits, error: error)


three_products = Exercise(
    cases=[
        Case(
            args=near,
            answer=products(*near()),
            mistakes=[
                Mistake(
                    other_order, "both are there, in the other order: what the rows of the centers get comes first"
                ),
                Mistake(turned_round, "the sign is turned round: the error is label - sigmoid"),
                Mistake(all_squares_alike, "each square counts as much as its weight, a white one nothing"),
                Mistake(no_sigmoid, "the error is label - sigmoid(logit); yours takes the logit itself"),
                Mistake(weighted_label, "the weight is a factor of label - sigmoid, not of the label alone"),
                Mistake(moved_centers, "the contexts want their changes of the centers as they were before the step"),
            ],
        ),
        Case(
            args=far,
            answer=products(*far()),
            mistakes=[
                Mistake(no_bound, "a square with a logit of 8 or -8 changes something, and should not"),
                Mistake(one_bound, "a square with a logit of -8 is also beyond the cut-off"),
                Mistake(cut_logits, "a logit beyond the cut-off is not cut to 6: its square changes nothing"),
            ],
        ),
    ],
    hint="the errors have a row for each center and a column for each context, as weights; you have {answer}",
    kind="a pair (of_centers, of_contexts)",
)
