"""word2vec on several ranks, the recipe of lesson 09 as a plain script: any launcher can start it.

    horovodrun -np 2 python train.py --json losses.json

Each rank draws the same batches and trains on its part of them. Its loss counts by the size of the part, so any number
of ranks gives the losses of one process, up to rounding.
Needs TensorFlow, NumPy and Horovod, and nothing else of this repository.
"""

import argparse
import json
import os
import socket
from pathlib import Path

import numpy as np
import tensorflow as tf

V, DIM, BATCH, SAMPLED, LR = 1_000, 32, 256, 64, 1.0


def check_own_name():
    """Over Gloo other ranks call this host at the address that its own name has here; is that a real one?"""
    name = socket.gethostname()
    address = socket.gethostbyname(name)
    if address.startswith("127."):
        raise SystemExit(
            f"{name} calls itself {address}, where nobody else reaches it: in its /etc/hosts, "
            f"give {name} the address that it has in the network"
        )


def use_gpu(local_rank, config=tf.config):
    """Give this process one GPU of its host. Without GPUs: nothing."""
    gpus = config.list_physical_devices("GPU")
    if gpus:
        mine = gpus[local_rank % len(gpus)]
        config.set_visible_devices(mine, "GPU")
        config.experimental.set_memory_growth(mine, True)


def log_uniform(rng, n):
    """n random words, small ids more often: int64 [n]."""
    return np.exp(rng.random(n) * np.log(V + 1)).astype(np.int64) - 1


def batches(seed, steps):
    """(centers, contexts, negatives) of each step: word i comes with words near i."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        centers = log_uniform(rng, BATCH)
        contexts = (centers + rng.integers(1, 6, BATCH)) % V
        yield centers, contexts, log_uniform(rng, SAMPLED)


def make_tables(seed):
    start = tf.random.stateless_uniform([V, DIM], [seed, 0], -0.5 / DIM, 0.5 / DIM)
    return [tf.Variable(start), tf.Variable(tf.zeros([V, DIM])), tf.Variable(tf.zeros([V]))]


def nce_losses(tables, centers, contexts, negatives):
    """The NCE loss of each pair, float32 [batch]."""
    embeddings, weights, biases = tables
    rows = tf.gather(embeddings, centers)
    drawn = [SAMPLED * tf.math.log1p(1 / (1 + tf.cast(w, tf.float32))) / np.log(V + 1) for w in (contexts, negatives)]
    samples = negatives, drawn[0][:, None], drawn[1]
    return tf.nn.nce_loss(weights, biases, contexts[:, None], rows, SAMPLED, V, sampled_values=samples)


def train(steps=60, seed=0, logs=None):
    """On each rank: a dict with its place among the ranks and the loss of each step, averaged over the ranks.

    logs: a folder for TensorBoard, in which each rank writes to a folder of its own.
    """
    import horovod.tensorflow as hvd

    hvd.init()
    use_gpu(hvd.local_rank())
    rank, size = hvd.rank(), hvd.size()
    factor = len(range(BATCH)[rank::size]) * size / BATCH  # 1 where all parts are equal
    tables = make_tables(seed + rank)  # different on purpose: the broadcast makes them equal
    hvd.broadcast_variables(tables, root_rank=0)

    @tf.function(reduce_retracing=True, autograph=False)  # or TensorFlow rewrites Horovod, for seconds
    def step(centers, contexts, negatives):
        with tf.GradientTape() as tape:
            loss = factor * tf.reduce_mean(nce_losses(tables, centers, contexts, negatives))
        tape = hvd.DistributedGradientTape(tape)
        for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
            table.scatter_sub(tf.IndexedSlices(LR * gradient.values, gradient.indices))
        return loss

    writer = tf.summary.create_file_writer(f"{logs}/rank-{rank}") if logs else tf.summary.create_noop_writer()
    own = []
    with writer.as_default():
        for number, (centers, contexts, negatives) in enumerate(batches(seed, steps)):
            own.append(float(step(centers[rank::size], contexts[rank::size], negatives)))
            tf.summary.scalar("loss", own[-1], number)
            if rank == 0 and number % 100 == 0:
                print(f"step {number}", flush=True)
    losses = hvd.allreduce(tf.constant(own), name="losses").numpy().tolist()
    place = {"rank": rank, "size": size, "local": hvd.local_rank(), "cross": hvd.cross_rank()}
    return {**place, "host": socket.gethostname(), "losses": losses}


def main():
    import horovod.tensorflow as hvd

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logs", help="a folder for TensorBoard")
    parser.add_argument("--json", help="the file that rank 0 writes: a list of what train() returns on each rank")
    options = parser.parse_args()
    if int(os.environ.get("HOROVOD_CROSS_SIZE", 1)) > 1:  # set by horovodrun
        check_own_name()
    mine = train(options.steps, options.seed, options.logs)
    everyone = hvd.allgather_object(mine)
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks, loss from {mine['losses'][0]:.3f} to {mine['losses'][-1]:.3f}")
        if options.json:
            Path(options.json).write_text(json.dumps(everyone))


if __name__ == "__main__":
    main()
