"""The negatives that a batch shares, drawn by three samplers, and the biases that fit to a loss and its sampler."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

LOSSES = "full_softmax", "sampled_softmax", "nce", "sgns"  # notebook 03 defines them
SAMPLERS = {
    "log_uniform": tf.random.log_uniform_candidate_sampler,
    "uniform": tf.random.uniform_candidate_sampler,
    "unigram": tf.random.fixed_unigram_candidate_sampler,
}


class Samples(NamedTuple):
    """Negatives for one batch, and how often the sampler should have drawn each word: its expected count.

    ids: int32 [num_sampled], all different. log_expected: float32 [num_sampled], log of the expected count of each.
    log_expected_true: float32 [batch], the same for the true contexts.
    """

    ids: tf.Tensor
    log_expected: tf.Tensor
    log_expected_true: tf.Tensor


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
    options = {"num_true": 1, "num_sampled": num_sampled, "unique": True, "range_max": len(counts), "seed": seed}
    if sampler == "unigram":
        options |= {"distortion": 0.75, "unigrams": list(map(float, counts))}
    true = tf.cast(contexts, tf.int64)[:, None]
    ids, expected_true, expected = SAMPLERS[sampler](true, **options)
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
        raise ValueError(f"num_sampled={num_sampled:,}, but there are {available:,} to draw from: all are different")
    rises = np.flatnonzero(np.diff(counts[1:]) > 0) + 1
    if sampler == "log_uniform" and rises.size:
        first, second = (f"id {i} counts {counts[i]:,}" for i in (rises[0], rises[0] + 1))
        raise ValueError(f"The log-uniform sampler needs ids sorted by falling count, but {first} and {second}.")


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
