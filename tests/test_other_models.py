"""The pieces of notebook 11, taken from its cells: gradients by differences, augmentation, metrics, Adasum, warm-up."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.optimize import approx_fprime
from shown import taken
from sklearn.metrics import accuracy_score, log_loss

NAMES = """product article_square passing_square finite_differences largest_error ProductLayer shifted own_batches
    over_ranks means_and_count adasum lr_of"""


@pytest.fixture(scope="module")
def of_11():
    return taken("11", NAMES, np=np, tf=tf)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_gradient_of_the_product_by_scipys_differences(of_11, rng):
    a, b, dy = rng.normal(size=[3, 4]), rng.normal(size=[4, 2]), rng.normal(size=[3, 2])
    with tf.GradientTape() as tape:
        one, other = tf.Variable(a), tf.Variable(b)
        value = tf.reduce_sum(dy * of_11.product(one, other))
    of_a, of_b = tape.gradient(value, [one, other])
    numeric = approx_fprime(a.ravel(), lambda x: np.sum(dy * (x.reshape(3, 4) @ b)), 1e-6)
    assert np.abs(of_a.numpy().ravel() - numeric).max() < 1e-5
    numeric = approx_fprime(b.ravel(), lambda x: np.sum(dy * (a @ x.reshape(4, 2))), 1e-6)
    assert np.abs(of_b.numpy().ravel() - numeric).max() < 1e-5


def test_the_notebooks_judge_finds_each_wrong_gradient(of_11, rng):
    x = rng.normal(size=[3, 3])
    largest_error, product = of_11.largest_error, of_11.product
    wrong = tf.custom_gradient(lambda x: (x @ x, lambda dy: dy @ tf.transpose(x)))  # half of it
    assert largest_error(lambda x: product(x, x), x) < 1e-6
    assert largest_error(wrong, x) > 0.1 and largest_error(of_11.passing_square, x) > 0.1
    with pytest.raises(ValueError, match="grad"):
        largest_error(of_11.article_square, x)


def test_finite_differences_of_a_polynomial(of_11, rng):
    x = rng.normal(size=[2, 3])
    found = of_11.finite_differences(lambda x: float(np.sum(x**3)), x)
    assert np.abs(found - 3 * x**2).max() < 1e-6


def test_the_layer_is_a_dense_layer_without_bias(of_11, rng):
    x = np.float32(rng.normal(size=[5, 4]))
    layer, dense = of_11.ProductLayer(3), tf.keras.layers.Dense(3, use_bias=False)
    layer.build(x.shape), dense.build(x.shape)
    dense.set_weights(layer.get_weights())
    with tf.GradientTape(persistent=True) as tape:
        one, other = (tf.reduce_sum(tf.sin(each(x))) for each in (layer, dense))
    of_layer, of_dense = (tape.gradient(y, each.kernel.value) for y, each in ((one, layer), (other, dense)))
    assert np.abs(of_layer - of_dense).max() < 1e-6 < np.abs(of_dense).max()


def test_shifted_moves_each_image_by_at_most_one_pixel(of_11, rng):
    images = np.float32(rng.random([200, 8, 8, 1]))
    moved = of_11.shifted(images, np.random.default_rng(1))
    padded, seen = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)]), set()
    for image, around in zip(moved, padded, strict=True):
        (place,) = [
            (i, j) for i in range(3) for j in range(3) if np.array_equal(around[i : i + 8, j : j + 8], image)
        ]
        seen.add(place)
    assert len(seen) == 9
    assert np.array_equal(moved, of_11.shifted(images, np.random.default_rng(1)))
    assert not np.array_equal(moved, of_11.shifted(images, np.random.default_rng(2)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_uneven_shards_together_are_the_whole_and_their_metrics_scikit_learns(of_11, rng, size):
    labels, logits = rng.integers(0, 4, 389), np.float32(rng.normal(size=[389, 4]))
    parts = [[of_11.own_batches(side, rank, size) for side in (logits, labels)] for rank in range(size)]
    assert np.array_equal(np.sort(np.concatenate([y for _, y in parts])), np.sort(labels))
    assert sorted(len(y) for _, y in parts) == {1: [389], 2: [133, 256], 3: [128, 128, 133]}[size]
    each = [of_11.means_and_count(lambda x: x, *part) for part in parts]
    accuracy, loss = of_11.over_ranks([row[:2] for row in each], [row[2] for row in each])
    chances = tf.nn.softmax(logits).numpy().astype(float)
    chances /= chances.sum(axis=1, keepdims=True)
    assert accuracy == pytest.approx(accuracy_score(labels, logits.argmax(axis=1)))
    assert loss == pytest.approx(log_loss(labels, chances), rel=1e-5)
    if size == 2:
        assert np.mean([row[1] for row in each]) != pytest.approx(loss, rel=1e-5)


def test_adasum_lies_between_average_and_sum(of_11, rng):
    adasum = of_11.adasum
    a = tf.constant(rng.normal(size=[4, 5]))
    assert np.allclose(adasum(a, a), a) and np.allclose(adasum(a, 3 * a), 2 * a)
    b = rng.normal(size=[4, 5])
    b -= np.sum(a * b) / np.sum(a * a) * a  # at right angles
    assert np.allclose(adasum(a, b), a + b)
    assert np.allclose(adasum(a, tf.zeros_like(a)), a)
    assert np.allclose(adasum(a, b + a), adasum(b + a, a))


def test_the_warm_up_rises_from_one_ranks_rate_to_that_of_all(of_11):
    lr_of = of_11.lr_of
    rates = [lr_of(step, 4, 10, lr=0.05) for step in range(20)]
    assert rates[0] == pytest.approx(0.05 * 1.3) and rates[9:] == pytest.approx([0.2] * 11)
    assert np.allclose(np.diff(rates[:10]), 0.015)
    assert [lr_of(step, 1, 10, lr=0.05) for step in range(20)] == pytest.approx([0.05] * 20)
    assert lr_of(0, 4, 1, lr=0.05) == pytest.approx(0.2)
