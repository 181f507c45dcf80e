"""The handwritten digits and the small networks of the lessons about other models than word2vec."""

import numpy as np
import tensorflow as tf


@tf.custom_gradient
def product(a, b):
    """Multiply two matrices, with a gradient of our own."""

    def gradients(dy):
        return dy @ tf.transpose(b), tf.transpose(a) @ dy

    return a @ b, gradients


class ProductLayer(tf.keras.layers.Layer):
    """A dense layer that computes with `product`."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        """Make the weights, as wide as the input."""
        self.kernel = self.add_weight(shape=[shape[-1], self.units])

    def call(self, inputs):
        """Multiply."""
        return product(inputs, tf.convert_to_tensor(self.kernel))


def own_network(keras):
    """Return the layers of a small network of `ProductLayer`."""
    return [keras.layers.Flatten(), ProductLayer(32), keras.layers.ReLU(), ProductLayer(10)]


def cnn(keras):
    """Return the layers of a network with two convolutions."""
    conv, dense = keras.layers.Conv2D, keras.layers.Dense
    options = {"padding": "same", "activation": "relu"}
    return [
        conv(32, 3, **options),
        conv(64, 3, **options),
        keras.layers.MaxPool2D(),
        keras.layers.Flatten(),
        dense(64, "relu"),
        dense(10, dtype=keras.backend.floatx()),
    ]


class OnRanks(tf.keras.Sequential):
    """A Keras model whose gradients `distribute`, such as Horovod's tape, averages."""

    distribute = None

    def train_step(self, batch):
        """Train on a batch (x, y); returns {"loss": loss}."""
        x, y = batch[:2]
        values = [weight.value for weight in self.trainable_variables]
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            scaled = self.optimizer.scale_loss(loss)
        if self.distribute:
            tape = self.distribute(tape)
        gradients = tape.gradient(scaled, values)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:  # only that of the loss
            metric.update_state(loss)
        return {"loss": loss}


def compiled(network, distribute=None, optimizer=None, seed=0):
    """Return a compiled OnRanks.

    Parameters
    ----------
    network : function
        network(keras) -> list of layers, for images of 8 x 8.
    distribute : function, optional
        Such as horovod.tensorflow.DistributedGradientTape.
    optimizer : Keras optimizer, optional
        By default SGD with momentum.
    seed : int
        Of the weights.
    """
    tf.keras.utils.set_random_seed(seed)
    model = OnRanks([tf.keras.Input([8, 8, 1]), *network(tf.keras)])
    model.distribute = distribute
    sgd = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    crossentropy = tf.keras.losses.SparseCategoricalCrossentropy
    model.compile(optimizer or sgd, crossentropy(from_logits=True), jit_compile=False)
    return model


def digits():
    """Return 1,408 digits to train on and 389 to validate, each as images [n, 8, 8, 1] and labels [n]."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(1797)
    images = np.float32(found.images[order, :, :, None] / 16)
    labels = found.target[order]
    return (images[:1408], labels[:1408]), (images[1408:], labels[1408:])


def means_and_count(model, x, y):
    """Return [accuracy, mean loss, number of examples] of a model."""
    logits = model(x)
    right = np.mean(np.argmax(logits, axis=1) == y)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return [float(right), float(tf.reduce_mean(each)), len(y)]
