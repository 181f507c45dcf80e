"""Four losses of skip-gram on the same tables: full softmax, sampled softmax, NCE and negative sampling (SGNS).

Each takes tables = (embeddings [V, dim], weights [V, dim], biases [V]), all of one float dtype, and a batch of pairs,
centers and contexts, both int32 [batch]. Each returns the mean loss of a pair, a scalar of the dtype of the tables.
All but the full softmax also take `samples`, the negatives that the whole batch shares; see `draw_samples`.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

SAMPLERS = ("log_uniform", "uniform", "unigram")


class Samples(NamedTuple):
    """Negatives for one batch, and how often the sampler should have drawn each word: its expected count.

    ids: int32 [num_sampled], all different. log_expected: float32 [num_sampled], log of the expected count of each.
    log_expected_true: float32 [batch], the same for the true contexts.
    """

    ids: tf.Tensor
    log_expected: tf.Tensor
    log_expected_true: tf.Tensor


# ---- The losses


def full_softmax(tables, centers, contexts):
    """Minus the log probability of the context among all V words: V logits for each pair."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    logits = tf.matmul(rows, weights, transpose_b=True) + biases
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def sampled_logits(tables, centers, contexts, samples):
    """The logits of the true contexts, [batch], and of the samples, [batch, num_sampled]."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    true = tf.reduce_sum(rows * tf.gather(weights, contexts), axis=1)
    true += tf.gather(biases, contexts)
    sampled = tf.matmul(rows, tf.gather(weights, samples.ids), transpose_b=True)
    return true, sampled + tf.gather(biases, samples.ids)


def corrected_logits(tables, centers, contexts, samples):
    """The same minus the log of the expected counts, so that words drawn often do not count for more."""
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    true -= tf.cast(samples.log_expected_true, true.dtype)
    return true, sampled - tf.cast(samples.log_expected, true.dtype)


def sampled_softmax(tables, centers, contexts, samples):
    """Minus the log probability of the context among itself and the samples.

    A sample that is the true context is left out, as in `tf.nn.sampled_softmax_loss`.
    Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation", 2015.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    hits = contexts[:, None] == samples.ids
    sampled = tf.where(hits, sampled.dtype.min, sampled)
    logits = tf.concat([true[:, None], sampled], axis=1)
    return tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - true)


def nce(tables, centers, contexts, samples):
    """True against sampled, one yes-or-no question each, with logits that know how likely noise is.

    Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010.
    """
    true, sampled = corrected_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


def sgns(tables, centers, contexts, samples):
    """Negative sampling: the questions of NCE, with the logits as they are.

    Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", 2013. Theirs draws
    negatives for each pair by itself and has no biases; here the batch shares them, and biases of 0 give theirs.
    """
    true, sampled = sampled_logits(tables, centers, contexts, samples)
    noise = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + noise)


LOSSES = {"full_softmax": full_softmax, "sampled_softmax": sampled_softmax, "nce": nce, "sgns": sgns}


# ---- The samplers


def draw_samples(sampler, counts, contexts, num_sampled, seed=None):
    """Draw `num_sampled` different words, one after the other, until there are enough: a Samples.

    sampler is one of
    - "log_uniform": id k with probability log((k + 2) / (k + 1)) / log(V + 1), near Zipf's law in sorted ids;
    - "uniform": every id alike;
    - "unigram": in proportion to counts ** 0.75, the noise of word2vec.
    counts: int [V], of the words in the corpus. contexts: int32 [batch]. seed: of this operation, an int.

    ValueError for an unknown sampler, for num_sampled outside 1..V (for "unigram", outside 1..words with a count
    above 0), and for "log_uniform" when counts (from id 1 on: id 0 is UNK) rise anywhere.
    """
    check_sampler(sampler, counts, num_sampled)
    true = tf.cast(contexts, tf.int64)[:, None]
    options = {"num_true": 1, "num_sampled": num_sampled, "unique": True, "range_max": len(counts), "seed": seed}
    if sampler == "log_uniform":
        ids, expected_true, expected = tf.random.log_uniform_candidate_sampler(true, **options)
    elif sampler == "uniform":
        ids, expected_true, expected = tf.random.uniform_candidate_sampler(true, **options)
    else:
        ids, expected_true, expected = tf.random.fixed_unigram_candidate_sampler(
            true, **options, distortion=0.75, unigrams=[float(count) for count in counts]
        )
    return Samples(tf.cast(ids, tf.int32), tf.math.log(expected), tf.math.log(expected_true[:, 0]))


def probabilities(sampler, counts):
    """How likely one draw of the sampler is each word: float64 [V], sums to 1. ValueError for an unknown sampler."""
    _check_name("sampler", sampler, SAMPLERS)
    ids = np.arange(len(counts))
    if sampler == "log_uniform":
        weights = np.log((ids + 2) / (ids + 1))
    else:
        weights = np.asarray(counts, np.float64) ** (0.75 if sampler == "unigram" else 0)
    return weights / weights.sum()


def check_sampler(sampler, counts, num_sampled):
    """ValueError, with the numbers, when `draw_samples` cannot draw so many or would draw the wrong words."""
    _check_name("sampler", sampler, SAMPLERS)
    counts = np.asarray(counts)
    available = np.count_nonzero(counts) if sampler == "unigram" else len(counts)
    if not 1 <= num_sampled <= available:
        raise ValueError(
            f"num_sampled={num_sampled:,}, but the samples are different words and there are {available:,} to draw from"
        )
    rises = np.flatnonzero(np.diff(counts[1:]) > 0) + 1
    if sampler == "log_uniform" and rises.size:
        i = rises[0]
        raise ValueError(
            f"The log-uniform sampler needs ids sorted by falling count, "
            f"but id {i} counts {counts[i]:,} and id {i + 1} counts {counts[i + 1]:,}."
        )


# ---- Where the biases start


def frequency_biases(name, counts, num_sampled=64, sampler="unigram"):
    """Biases with which the loss called `name` starts as if it knew how frequent each word is: float32 [V].

    The logits of the softmaxes and of NCE tend to log p(context | center), so their biases start at log p(context).
    Those of SGNS tend to the same minus the log of the expected count of a sample.
    counts: int or float [V], how often each word is a context; 0 counts as 1. ValueError for an unknown name.
    """
    _check_name("loss", name, LOSSES)
    counts = np.maximum(counts, 1)
    biases = np.log(counts / counts.sum())
    if name == "sgns":
        biases -= np.log(np.minimum(1, num_sampled * probabilities(sampler, counts)))
    return biases.astype(np.float32)


def _check_name(kind, name, known):
    if name not in known:
        raise ValueError(f"There is no {kind} {name!r}: choose one of {', '.join(known)}.")
