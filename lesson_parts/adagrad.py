"""The training step that lesson 05 defines and lesson 06 times: any loss, by Adagrad."""

import tensorflow as tf


def adagrad_step(loss, tables, lr):
    """Compile a training step.

    The gradient is that of the sum over the batch. A row that the batch uses several times is changed once, by the sum.
    Duchi et al., "Adaptive Subgradient Methods", 2011.

    Parameters
    ----------
    loss : function
        Of (tables, centers, contexts), to the mean loss of a pair.
    tables : list of tf.Variable
        The step changes them.
    lr : float

    Returns
    -------
    function
        Of (centers, contexts), both int32 [batch], to the loss, a scalar.
    """
    optimizer = tf.compat.v1.train.AdagradOptimizer(lr)

    @tf.function(reduce_retracing=True)
    def step(centers, contexts):
        with tf.GradientTape() as tape:
            value = loss(tables, centers, contexts)
            total = value * tf.cast(tf.size(centers), value.dtype)
        optimizer.apply_gradients(zip(tape.gradient(total, tables), tables))
        return value

    return step
