"""Where the time of a rank of the block trainer goes, and how near its steps come to what the processor can do.

Used by benchmarks.words_per_second. All ranks measure at the same time, since they share the memory.
"""

import timeit

import numpy as np

from helpers.word2vec.stopwatch import PARTS

REPEATS = 5
SQUARE = 1_024  # a product of two such matrices runs at the processor's best
COPIED = 64 * 2**20  # bytes, more than any cache has


def seconds_of(work):
    """The least seconds of a few calls of work(), after one that does not count: what the processor can do."""
    work()
    return min(timeit.repeat(work, number=1, repeat=REPEATS))


def machine_speed():
    """(float operations per second of a large product, bytes per second read and written by a copy) of this rank."""
    import tensorflow as tf

    square = tf.random.uniform([SQUARE, SQUARE])
    source = np.ones(COPIED // 4, np.float32)
    target = np.empty_like(source)
    return (
        2 * SQUARE**3 / seconds_of(lambda: tf.matmul(square, square).numpy()),
        2 * COPIED / seconds_of(lambda: np.copyto(target, source)),
    )


def work_of_a_step(blocks, dim):
    """(float operations of the products, bytes gathered, bytes scattered) of one step of the block trainer.

    Gathering reads a row and writes it elsewhere; scattering reads a change and a row, and writes the row.
    """
    around = blocks.tokens + 2 * blocks.window + blocks.random
    rows = blocks.blocks * (blocks.tokens + around) * dim * 4
    return 3 * 2 * blocks.blocks * blocks.tokens * around * dim, 2 * rows, 3 * rows


def seconds_of_parts(vocab_size, dim, blocks, steps=200):
    """Seconds of products, gathering and scattering in one step, each of them alone, on tables like the trainer's."""
    import tensorflow as tf

    around = blocks.tokens + 2 * blocks.window + blocks.random
    tables = [tf.Variable(tf.random.uniform([vocab_size, dim])) for _ in range(2)]
    ids = np.random.default_rng(0).zipf(1.1, [blocks.blocks, around]) % vocab_size
    words = tf.constant(ids, tf.int32)
    inside = words[:, : blocks.tokens]
    centers, contexts = tf.gather(tables[0], inside), tf.gather(tables[1], words)
    error = tf.matmul(centers, contexts, transpose_b=True)

    def products(i):  # with a matrix that depends on i: else TensorFlow would compute them once for all steps
        scaled = error * tf.cast(i, tf.float32)
        one, two = tf.matmul(scaled, contexts), tf.matmul(scaled, centers, transpose_a=True)
        return [tf.matmul(one, contexts, transpose_b=True)[0, 0, 0], two[0, 0, 0]]

    def gathering(i):
        return [tf.gather(tables[n], (part + i) % vocab_size)[0, 0, 0] for n, part in enumerate((inside, words))]

    def scattering(i):
        for table, part, change in (tables[0], inside, centers), (tables[1], words, contexts):
            table.scatter_add(tf.IndexedSlices(change, (part + i) % vocab_size))
        return [tf.constant(0.0)]

    def loop(part):
        @tf.function
        def run():
            total = tf.constant(0.0)
            for i in tf.range(steps):
                total += tf.add_n(part(i))
            return total

        return seconds_of(lambda: run().numpy()) / steps

    return {"products": loop(products), "gathering": loop(gathering), "scattering": loop(scattering)}


def measured(spent, vocab_size, dim, blocks):
    """On a rank, after training: a dict of all that `describe` needs."""
    flops, copied = machine_speed()
    alone = seconds_of_parts(vocab_size, dim, blocks)
    operations, gathered, scattered = work_of_a_step(blocks, dim)
    bound = operations / flops, gathered / copied, scattered / copied
    return {
        "spent": dict(spent),
        "gflops": flops / 1e9,
        "gb_per_s": copied / 1e9,
        "step": spent["training"] / spent["steps"],
        "alone": alone,
        "bound": dict(zip(alone, bound, strict=True)),
    }


def describe(found):
    """Some lines about what `measured` found on a rank."""
    spent, alone, bound = found["spent"], found["alone"], found["bound"]
    whole = sum(spent[part] for part in PARTS if part in spent)
    shares = ", ".join(f"{part} {spent[part] / whole:.1%}" for part in PARTS if part in spent)
    beside = f"; Horovod {spent['Horovod'] / whole:.1%}, beside the others" if "Horovod" in spent else ""
    parts = ", ".join(f"{part} {1e6 * alone[part]:.0f} ({bound[part] / alone[part]:.0%})" for part in alone)
    speeds = f"{found['gflops']:.0f} GFLOP/s in a large product, {found['gb_per_s']:.1f} GB/s in a copy"
    return [
        f"its time: {shares}{beside}",
        f"this rank has {speeds}; a step at these speeds takes {1e6 * sum(bound.values()):.0f} us",
        f"a step takes {1e6 * found['step']:.0f} us, {sum(bound.values()) / found['step']:.0%} of that speed; "
        f"alone, in us: {parts}",
    ]
