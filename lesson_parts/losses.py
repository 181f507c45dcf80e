"""Of lessons 05 and 06: four losses of skip-gram, and the samplers of their negatives.

The losses, the same functions as in lesson 05: full softmax, sampled softmax, NCE and negative
sampling (SGNS). Each takes

    tables              embeddings [V, dim], weights [V, dim], biases [V], all of one float dtype
    centers, contexts   a batch of pairs, both int32 [batch]
    samples             the negatives that the whole batch shares, see `draw_samples`; all but the
                        full softmax

and returns the mean loss of a pair, a scalar of the dtype of the tables.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from helpers.word2vec.model import POWER, check_name

SAMPLERS = {
    "log_uniform": tf.random.log_uniform_candidate_sampler,
    "uniform": tf.random.uniform_candidate_sampler,
    "unigram": tf.random.fixed_unigram_candidate_sampler,
}


# ---- The losses


def full_softmax(tables, centers, contexts):
    """Compute minus the log probability of the context among all V words: V logits for each pair."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    logits = tf.matmul(rows, weights, transpose_b=True) + biases
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def sampled_logits(tables, centers, contexts, samples):
    """Compute logits of the true contexts, [batch], and of the samples, [batch, num_sampled]."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    sampled = tf.matmul(rows, tf.gather(weights, samples.ids), transpose_b=True)
    return true, sampled + tf.gather(biases, samples.ids)


def corrected_logits(tables, centers, contexts, samples):
    """Compute the same minus the log of the expected counts: frequent samples count no more."""
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    true -= tf.cast(samples.log_expected_true, true.dtype)
    return true, sampled - tf.cast(samples.log_expected, true.dtype)


def sampled_softmax(tables, centers, contexts, samples):
    """Compute minus the log probability of the context among itself and the samples.

    A sample that is the true context is left out, as in `tf.nn.sampled_softmax_loss`.
    Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation", 2015.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    hits = contexts[:, None] == samples.ids
    sampled = tf.where(hits, sampled.dtype.min, sampled)
    logits = tf.concat([true[:, None], sampled], axis=1)
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def nce(tables, centers, contexts, samples):
    """Ask of true and sampled words one yes-or-no question each, with logits that know the noise.

    Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


def sgns(tables, centers, contexts, samples):
    """Ask the questions of NCE with the logits as they are: negative sampling.

    Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality",
    2013. Theirs draws negatives for each pair by itself and has no biases; here the batch shares
    them, and biases of 0 give theirs.
    """
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


LOSSES = {loss.__name__: loss for loss in (full_softmax, sampled_softmax, nce, sgns)}


# ---- Their negatives


class Samples(NamedTuple):
    """Negatives for one batch, and how often the sampler should have drawn each word.

    Attributes
    ----------
    ids : int32 tensor [num_sampled]
        All different.
    log_expected : float32 tensor [num_sampled]
        The log of the expected count of each.
    log_expected_true : float32 tensor [batch]
        The same for the true contexts.
    """

    ids: tf.Tensor
    log_expected: tf.Tensor
    log_expected_true: tf.Tensor


def draw_samples(sampler, counts, contexts, num_sampled, seed=None):
    """Draw different words, one after the other, until there are enough.

    Parameters
    ----------
    sampler : str
        "log_uniform", "uniform" or "unigram", see `helpers.word2vec.probabilities`.
    counts : int array [V]
        Of the words in the corpus.
    contexts : int32 tensor [batch]
    num_sampled : int
    seed : int, optional
        Of this operation.

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        For an unknown sampler, for num_sampled outside 1..V (for "unigram", outside 1..words with a
        count above 0), and for "log_uniform" when counts (from id 1 on: id 0 is UNK) rise anywhere.
    """
    check_sampler(sampler, counts, num_sampled)
    options = {"num_true": 1, "num_sampled": num_sampled, "unique": True}
    options["range_max"] = len(counts)  # ids are below it
    if sampler == "unigram":
        options["unigrams"] = np.asarray(counts, float).tolist()
        options["distortion"] = POWER
    true = tf.cast(contexts, tf.int64)[:, None]
    drawn = SAMPLERS[sampler](true, seed=seed, **options)
    return Samples(
        ids=tf.cast(drawn.sampled_candidates, tf.int32),
        log_expected=tf.math.log(drawn.sampled_expected_count),
        log_expected_true=tf.math.log(drawn.true_expected_count[:, 0]),
    )


def check_sampler(sampler, counts, num_sampled):
    """Raise ValueError, with the numbers, when `draw_samples` cannot draw so many different words.

    Also when "log_uniform" would draw the wrong ones.

    Parameters
    ----------
    sampler, counts, num_sampled
        See `draw_samples`.
    """
    check_name("sampler", sampler, SAMPLERS)
    counts = np.asarray(counts)
    available = np.count_nonzero(counts) if sampler == "unigram" else len(counts)
    if not 1 <= num_sampled <= available:
        there_are = f"there are {available:,} to draw from: all are different"
        raise ValueError(f"num_sampled={num_sampled:,}, but {there_are}")
    rises = np.flatnonzero(np.diff(counts[1:]) > 0) + 1
    if sampler == "log_uniform" and rises.size:
        i = rises[0]
        first = f"id {i} counts {counts[i]:,}"
        second = f"id {i + 1} counts {counts[i + 1]:,}"
        problem = f"ids sorted by falling count, but {first} and {second}"
        raise ValueError(f"The log-uniform sampler needs {problem}.")
