"""train.py's model under TensorFlow's own synchronous strategies; as there, the losses are those of one process.

    python mirrored.py                      # MirroredStrategy: two replicas in this process, one for each device
    TF_CONFIG='{...}' python mirrored.py    # MultiWorkerMirroredStrategy: you start one process on each host
"""

import argparse
import json
import os
from pathlib import Path

import tensorflow as tf
from train import LR, batches, make_tables, nce_losses


def two_devices():
    """The names of two GPUs; without them of two logical CPUs, which have to be made before TensorFlow's first use."""
    if len(tf.config.list_physical_devices("GPU")) < 2:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, 2 * [tf.config.LogicalDeviceConfiguration()])
        return ["CPU:0", "CPU:1"]
    return ["GPU:0", "GPU:1"]


def train(strategy, steps=60, seed=0):
    """The loss of each step, averaged over the replicas of a synchronous strategy: a list of float."""
    with strategy.scope():
        tables = make_tables(seed)
        # (the optimizers of Keras 3 update whole tables, this one the rows of a sparse gradient)
        descent = tf.compat.v1.train.GradientDescentOptimizer(LR)

    def on_replica(*batch):
        context = tf.distribute.get_replica_context()
        replica, replicas = context.replica_id_in_sync_group, context.num_replicas_in_sync
        centers, contexts, negatives = batch
        with tf.GradientTape() as tape:
            losses = nce_losses(tables, centers[replica::replicas], contexts[replica::replicas], negatives)
            loss = tf.reduce_mean(losses) / replicas  # gradients are added up over the replicas
        gradients = tape.gradient(loss, tables)
        descent.apply_gradients(zip(gradients, tables, strict=True))
        return loss

    @tf.function
    def step(*batch):
        return strategy.reduce("SUM", strategy.run(on_replica, batch), axis=None)

    losses = []
    for number, batch in enumerate(batches(seed, steps)):
        losses.append(float(step(*map(tf.constant, batch))))
        if number % 100 == 0:
            print(f"step {number}", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", help="the file for the losses")
    options = parser.parse_args()
    if "TF_CONFIG" in os.environ:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        strategy = tf.distribute.MirroredStrategy(two_devices(), tf.distribute.ReductionToOneDevice())
    losses = train(strategy, options.steps)
    print(f"{strategy.num_replicas_in_sync} replicas, loss from {losses[0]:.3f} to {losses[-1]:.3f}")
    if options.json:
        Path(options.json).write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
