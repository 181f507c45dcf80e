"""The losses and samplers against NumPy in float64, against tf.nn given the same samples, and finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from helpers.word2vec import losses
from helpers.word2vec.losses import (
    LOSSES,
    SAMPLERS,
    Samples,
    check_sampler,
    draw_samples,
    frequency_biases,
    nce,
    probabilities,
    sgns,
)

V, DIM, BATCH, SAMPLED = 40, 5, 7, 12
COUNTS = np.array([3, *(1000 // np.arange(1, V))])  # UNK is rarer than the words after it


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def some_tables(rng, dtype):
    shapes = ([V, DIM], [V, DIM], [V])
    return [tf.Variable(rng.normal(size=shape), dtype=dtype) for shape in shapes]


def some_pairs(rng):
    return [tf.constant(rng.integers(0, V, BATCH), tf.int32) for _ in range(2)]


def some_samples(rng, contexts, hits=2):
    """Samples of which `hits` are also true contexts, with any expected counts."""
    true = list(dict.fromkeys(contexts.numpy().tolist()))
    others = [i for i in range(V) if i not in true]
    ids = [*true[:hits], *rng.permutation(others)[: SAMPLED - hits]]
    logs = (tf.constant(np.log(rng.uniform(0.05, 1, n)), tf.float32) for n in (SAMPLED, BATCH))
    return Samples(tf.constant(ids, tf.int32), *logs)


def numpy_logits(tables, centers, contexts):
    """float64: the true logits [batch] and those of all words [batch, V]."""
    embeddings, weights, biases = (table.numpy().astype(np.float64) for table in tables)
    everyone = embeddings[centers.numpy()] @ weights.T + biases
    return everyone[np.arange(BATCH), contexts.numpy()], everyone


def log1pexp(x):
    return np.logaddexp(0, x)


def of_tf_nn(samples):
    """The same samples as the `sampled_values` of tf.nn."""
    return (
        tf.cast(samples.ids, tf.int64),
        tf.exp(samples.log_expected_true)[:, None],
        tf.exp(samples.log_expected),
    )


def test_full_softmax_is_that_of_numpy(rng):
    tables, pairs = some_tables(rng, tf.float32), some_pairs(rng)
    true, everyone = numpy_logits(tables, *pairs)
    expected = np.mean(np.log(np.exp(everyone).sum(axis=1)) - true)
    assert losses.full_softmax(tables, *pairs).numpy() == pytest.approx(expected, abs=1e-5)


def test_full_softmax_of_large_logits_is_finite(rng):
    embeddings, weights, biases = some_tables(rng, tf.float32)
    assert np.isfinite(losses.full_softmax([embeddings, 1000 * weights, biases], *some_pairs(rng)))


@pytest.mark.parametrize("ours, theirs", [("nce", tf.nn.nce_loss), ("sampled_softmax", tf.nn.sampled_softmax_loss)])
def test_equal_to_tf_nn_given_the_same_samples(rng, ours, theirs):
    tables, (centers, contexts) = some_tables(rng, tf.float32), some_pairs(rng)
    samples = some_samples(rng, contexts)
    with tf.GradientTape(persistent=True) as tape:
        loss = LOSSES[ours](tables, centers, contexts, samples)
        embeddings, weights, biases = tables
        labels = tf.cast(contexts, tf.int64)[:, None]
        rows = tf.gather(embeddings, centers)
        values = of_tf_nn(samples)
        reference = tf.reduce_mean(theirs(weights, biases, labels, rows, SAMPLED, V, sampled_values=values))
    assert loss.numpy() == pytest.approx(reference.numpy(), abs=1e-5)
    for mine, other in zip(tape.gradient(loss, tables), tape.gradient(reference, tables), strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(mine), tf.convert_to_tensor(other), atol=1e-5)


def test_sgns_is_its_formula(rng):
    tables, (centers, contexts) = some_tables(rng, tf.float32), some_pairs(rng)
    samples = some_samples(rng, contexts)
    true, everyone = numpy_logits(tables, centers, contexts)
    expected = np.mean(log1pexp(-true) + log1pexp(everyone[:, samples.ids.numpy()]).sum(axis=1))
    assert sgns(tables, centers, contexts, samples).numpy() == pytest.approx(expected, abs=1e-5)


def test_nce_without_its_correction_is_sgns(rng):
    tables, (centers, contexts) = some_tables(rng, tf.float32), some_pairs(rng)
    samples = some_samples(rng, contexts)
    ones = Samples(samples.ids, 0 * samples.log_expected, 0 * samples.log_expected_true)
    assert nce(tables, centers, contexts, ones).numpy() == sgns(tables, centers, contexts, samples).numpy()
    assert abs(nce(tables, centers, contexts, samples) - sgns(tables, centers, contexts, samples)) > 0.1


def test_all_words_as_samples_make_the_full_softmax(rng):
    tables, (centers, contexts) = some_tables(rng, tf.float64), some_pairs(rng)
    samples = Samples(tf.range(V), tf.zeros(V), tf.zeros(BATCH))
    sampled = losses.sampled_softmax(tables, centers, contexts, samples)
    assert sampled.numpy() == pytest.approx(losses.full_softmax(tables, centers, contexts).numpy(), abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_finite_differences(rng, name):
    tables, (centers, contexts) = some_tables(rng, tf.float64), some_pairs(rng)
    rest = () if name == "full_softmax" else (some_samples(rng, contexts),)

    loss = tf.function(lambda: LOSSES[name](tables, centers, contexts, *rest))
    with tf.GradientTape() as tape:
        value = LOSSES[name](tables, centers, contexts, *rest)
    for table, gradient in zip(tables, tape.gradient(value, tables), strict=True):
        start = table.numpy()
        measured = np.zeros_like(start)
        for place in np.ndindex(start.shape):
            step = np.zeros_like(start)
            step[place] = 1e-5
            table.assign(start + step)
            above = loss().numpy()
            table.assign(start - step)
            measured[place] = (above - loss().numpy()) / 2e-5
        table.assign(start)
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), measured, atol=1e-8)


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
def test_probabilities_are_those_of_the_sampler(sampler):
    tf.random.set_seed(0)
    draw = tf.function(lambda: draw_samples(sampler, COUNTS, tf.range(1, 2), 1, seed=3).ids[0])
    drawn = np.bincount([draw().numpy() for _ in range(3000)], minlength=V) / 3000
    chance = probabilities(sampler, COUNTS)
    assert chance.sum() == pytest.approx(1)
    assert np.abs(drawn - chance).max() < 4 * np.sqrt(chance.max() / 3000)


def test_probabilities_by_hand():
    assert probabilities("uniform", [9, 8, 0]) == pytest.approx([1 / 3] * 3)
    assert probabilities("unigram", [16, 81]) == pytest.approx([8 / 35, 27 / 35])
    assert probabilities("log_uniform", [5, 4, 3]) == pytest.approx(np.log([2, 3 / 2, 4 / 3]) / np.log(4))


def test_draws_can_be_repeated():
    contexts = tf.range(5)

    def draw():
        tf.random.set_seed(4)
        return draw_samples("unigram", COUNTS, contexts, SAMPLED, seed=1).ids.numpy().tolist()

    assert draw() == draw()


@pytest.mark.parametrize("name", LOSSES)
def test_frequency_biases_leave_little_to_learn_without_vectors(name):
    """With counts as the only knowledge, these biases are where the gradient of the biases is almost 0."""
    chance = COUNTS / COUNTS.sum()
    contexts = tf.constant(np.random.default_rng(0).choice(V, 20_000, p=chance), tf.int32)
    tables = [tf.zeros([V, 1]), tf.zeros([V, 1]), tf.Variable(frequency_biases(name, COUNTS, 3))]
    tf.random.set_seed(0)

    @tf.function
    def gradient():
        rest = () if name == "full_softmax" else (draw_samples("unigram", COUNTS, contexts, 3),)
        with tf.GradientTape() as tape:
            value = LOSSES[name](tables, 0 * contexts, contexts, *rest)
        return tf.convert_to_tensor(tape.gradient(value, tables[2]))

    rounds = 1 if name == "full_softmax" else 300
    mean = sum(gradient().numpy() for _ in range(rounds)) / rounds
    assert np.abs(mean).max() < 0.05


def test_unk_needs_no_place_in_the_order():
    draw_samples("log_uniform", COUNTS, tf.range(3), 5)
    check_sampler("log_uniform", [5, 5, 5], 3)


# ---- Bad input


def test_unknown_names():
    with pytest.raises(ValueError, match="no loss 'softmax': choose one of full_softmax, sampled_softmax, nce, sgns"):
        frequency_biases("softmax", COUNTS)
    with pytest.raises(ValueError, match="no sampler 'zipf': choose one of log_uniform, uniform, unigram"):
        draw_samples("zipf", COUNTS, tf.range(3), SAMPLED)
    with pytest.raises(ValueError, match="no sampler 'zipf'"):
        probabilities("zipf", COUNTS)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("num_sampled", [0, 41])
def test_more_samples_than_classes(sampler, num_sampled):
    with pytest.raises(ValueError, match=f"num_sampled={num_sampled}, .* there are 40 to draw from"):
        draw_samples(sampler, COUNTS, tf.range(3), num_sampled)


def test_words_without_a_count_are_never_drawn_from_unigrams():
    with pytest.raises(ValueError, match="num_sampled=3, .* there are 2 to draw from"):
        draw_samples("unigram", [0, 5, 4], tf.range(3), 3)


def test_unsorted_counts():
    with pytest.raises(ValueError, match="id 2 counts 50 and id 3 counts 2,000"):
        draw_samples("log_uniform", [9, 100, 50, 2000], tf.range(3), 2)
    draw_samples("unigram", [9, 100, 50, 2000], tf.range(3), 2)
