"""Exercises of 05_nce_vs_softmax."""

import numpy as np

from exercises import Case, Exercise, Mistake

sgns_biases = Exercise(
    cases=[
        Case(
            args=(np.array([-2.0, -2.5]), np.array([-3.0, -3.5]), np.array([-1.0, -2.5])),
            answer=[-4, -3.5],
            mistakes=[
                Mistake(
                    lambda biases, log_expected, new_log_expected: biases - log_expected + new_log_expected,
                    "the sign: a word that is drawn more often as noise has a lower best logit",
                ),
                Mistake(
                    lambda biases, log_expected, new_log_expected: biases,
                    "so it is with NCE; the best logit of SGNS depends on the sampler",
                ),
                Mistake(
                    lambda biases, log_expected, new_log_expected: biases - new_log_expected,
                    "minus the old log E is still in the biases; take it out first",
                ),
                Mistake(
                    lambda biases, log_expected, new_log_expected: biases + log_expected,
                    "that takes the old log E out; the new one is not in yet",
                ),
            ],
        ),
    ],
    hint="a bias of -2 with log E -3 before and -1 now should become -4; you have {answer}",
)


def softplus(z):
    return np.logaddexp(0, z)


def logits(rows, true, negatives):
    """Return those of the true pairs [b], and of the negatives of each pair [b, k]."""
    return np.sum(rows * true, axis=1), np.einsum("bd,bkd->bk", rows, negatives)


def negatives_averaged(rows, true, negatives):
    real, noise = logits(rows, true, negatives)
    return np.mean(softplus(-real) + softplus(noise).mean(axis=1))


def summed_over_the_pairs(rows, true, negatives):
    real, noise = logits(rows, true, negatives)
    return np.sum(softplus(-real) + softplus(noise).sum(axis=1))


def signs_exchanged(rows, true, negatives):
    real, noise = logits(rows, true, negatives)
    return np.mean(softplus(real) + softplus(-noise).sum(axis=1))


def one_loss_a_pair(rows, true, negatives):
    real, noise = logits(rows, true, negatives)
    return softplus(-real) + softplus(noise).sum(axis=1)


own_negatives = Exercise(
    cases=[
        Case(
            args=(
                np.array([[1.0, 0.0], [0.0, 2.0]]),
                np.array([[1.0, 1.0], [1.0, -1.0]]),
                np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]),
            ),
            answer=3.6333368,
            mistakes=[
                Mistake(
                    negatives_averaged,
                    "the losses of a pair's negatives are added up, not averaged",
                ),
                Mistake(
                    summed_over_the_pairs,
                    "that is the sum over the pairs; return the mean loss of a pair",
                ),
                Mistake(
                    signs_exchanged,
                    "the signs are exchanged, the loss of a true pair falls when its logit rises",
                ),
                Mistake(
                    one_loss_a_pair,
                    "that is the loss of each pair; the mean over the batch is one number",
                ),
            ],
        ),
    ],
    hint="softplus(-z) for the true pair, softplus(z) for each of its own negatives; "
    "you have {answer}",
)
