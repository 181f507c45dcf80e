"""The losses against tf.nn given the same samples, the samplers against what they draw; lesson 05 has the formulas."""

import numpy as np
import pytest
import tensorflow as tf

from helpers.word2vec import frequency_biases, probabilities
from lesson_parts import losses
from lesson_parts.losses import LOSSES, SAMPLERS, Samples, check_sampler, draw_samples

V, DIM, BATCH, SAMPLED = 40, 5, 7, 12
COUNTS = np.array([3, *(1000 // np.arange(1, V))])  # UNK is rarer than the words after it


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return [tf.Variable(rng.normal(size=shape), dtype=tf.float32) for shape in ([V, DIM], [V, DIM], [V])]


@pytest.fixture
def pairs():
    rng = np.random.default_rng(1)
    return [tf.constant(rng.integers(0, V, BATCH), tf.int32) for _ in range(2)]


def some_samples(contexts):
    """Samples of which two are also true contexts, with any expected counts."""
    rng = np.random.default_rng(2)
    true = list(dict.fromkeys(contexts.numpy().tolist()))
    others = [i for i in range(V) if i not in true]
    ids = [*true[:2], *rng.permutation(others)[: SAMPLED - 2]]
    logs = (tf.constant(np.log(rng.uniform(0.05, 1, n)), tf.float32) for n in (SAMPLED, BATCH))
    return Samples(tf.constant(ids, tf.int32), *logs)


def test_full_softmax_of_large_logits_is_finite(tables, pairs):
    embeddings, weights, biases = tables
    assert np.isfinite(losses.full_softmax([embeddings, 1000 * weights, biases], *pairs))


@pytest.mark.parametrize("ours, theirs", [("nce", tf.nn.nce_loss), ("sampled_softmax", tf.nn.sampled_softmax_loss)])
def test_equal_to_tf_nn_given_the_same_samples_and_so_are_the_gradients(tables, pairs, ours, theirs):
    embeddings, weights, biases = tables
    centers, contexts = pairs
    samples = some_samples(contexts)
    expected = tf.exp(samples.log_expected_true)[:, None], tf.exp(samples.log_expected)
    values = tf.cast(samples.ids, tf.int64), *expected
    labels = tf.cast(contexts, tf.int64)[:, None]
    with tf.GradientTape(persistent=True) as tape:
        loss = LOSSES[ours](tables, centers, contexts, samples)
        rows = tf.gather(embeddings, centers)
        reference = tf.reduce_mean(theirs(weights, biases, labels, rows, SAMPLED, V, sampled_values=values))
    assert loss.numpy() == pytest.approx(reference.numpy(), abs=1e-5)
    for mine, other in zip(tape.gradient(loss, tables), tape.gradient(reference, tables), strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(mine), tf.convert_to_tensor(other), atol=1e-5)


# ---- Samplers


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samples_are_different_words_with_their_expected_counts(sampler):
    seen, expected = np.zeros(V), np.zeros(V)
    draw = tf.function(lambda: draw_samples(sampler, COUNTS, tf.range(V), SAMPLED, seed=3))
    tf.random.set_seed(0)
    rounds = 1500
    for _ in range(rounds):
        ids, log_expected, log_expected_true = (part.numpy() for part in draw())
        assert len(set(ids)) == SAMPLED
        np.testing.assert_allclose(log_expected_true[ids], log_expected, rtol=1e-5)
        seen[ids] += 1 / rounds
        expected += np.exp(log_expected_true) / rounds
    assert np.abs(seen - expected).max() < 0.06


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_probabilities_are_the_expected_counts_of_a_single_draw(sampler):
    single = draw_samples(sampler, COUNTS, tf.range(V), 1)
    np.testing.assert_allclose(probabilities(sampler, COUNTS), np.exp(single.log_expected_true), rtol=1e-4)


def test_draws_can_be_repeated():
    def draw():
        tf.random.set_seed(4)
        return draw_samples("unigram", COUNTS, tf.range(5), SAMPLED, seed=1).ids.numpy().tolist()

    assert draw() == draw()


def test_frequency_biases_are_log_frequencies_and_of_sgns_less_the_expected_counts():
    """Where the gradient of the biases is 0 as long as there are no vectors: lesson 05 follows the way there."""
    log_frequency = np.log(COUNTS / COUNTS.sum())
    expected = np.log(np.minimum(1, 3 * COUNTS**0.75 / np.sum(COUNTS**0.75)))
    for name in LOSSES:
        less = expected if name == "sgns" else 0
        np.testing.assert_allclose(frequency_biases(name, COUNTS, 3), log_frequency - less, atol=1e-5)
    assert frequency_biases("nce", [0, 1])[0] == pytest.approx(np.log(1 / 2))  # 0 counts as 1


# ---- Bad input


def test_unigrams_need_no_order_and_unk_no_place_in_that_of_log_uniform():
    check_sampler("unigram", [9, 100, 50, 2000], 2)
    check_sampler("log_uniform", COUNTS, 5)
    check_sampler("log_uniform", [5, 5, 5], 3)


NO_SAMPLER = "no sampler 'zipf': choose one of log_uniform, uniform, unigram"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (frequency_biases, ["softmax", COUNTS], "no loss 'softmax': choose one of full_softmax, sampled_softmax, nce"),
        (probabilities, ["zipf", COUNTS], NO_SAMPLER),
        (draw_samples, ["zipf", COUNTS, [0], SAMPLED], NO_SAMPLER),
        *[(check_sampler, [sampler, COUNTS, 0], "num_sampled=0, .* there are 40") for sampler in SAMPLERS],
        *[(check_sampler, [sampler, COUNTS, 41], "num_sampled=41, .* there are 40") for sampler in SAMPLERS],
        (draw_samples, ["unigram", [0, 5, 4], [0], 3], "num_sampled=3, .* there are 2 to draw from"),
        (draw_samples, ["log_uniform", [9, 100, 50, 2000], [0], 2], "id 2 counts 50 and id 3 counts 2,000"),
    ],
)
def test_what_cannot_be_drawn(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
