"""Where the time of a rank of the block trainer goes, and how near its steps come to what the processor can do.

Used by benchmarks.words_per_second. All ranks measure at the same time, since they share the memory.
"""

import timeit

import numpy as np
from numba import njit

from examples.stopwatch import PARTS
from helpers.word2vec.kernel import FAST, add_weighted, dot_products, logits_to_errors

REPEATS = 5
SQUARE = 1_024  # a product of two such matrices runs at the processor's best
COPIED = 64 * 2**20  # bytes, more than any cache has


@njit(**FAST)
def repeat_products(rows, errors, columns, sums, n):
    """The three products of n blocks, in tiles as the compiled loop has them, on rows that are in the cache."""
    tokens = errors.shape[0]
    for _ in range(n):
        for i in range(0, tokens, 2):
            dot_products(rows, rows, i, 0, columns, errors)
            add_weighted(errors, i, rows, 0, columns, sums)
            add_weighted(errors, i, rows, 0, columns, sums)
        for k in range(sums.shape[1]):
            sums[0, k] = sums[1, k] = 0


@njit(**FAST)
def repeat_sigmoid(errors, weights, columns, n):
    """The errors of the pairs of n blocks."""
    for _ in range(n):
        for i in range(0, errors.shape[0], 2):
            logits_to_errors(errors, weights, i, 0, columns, np.float32(1), np.float32(6))


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
    """(float operations of the products, bytes gathered, bytes scattered) of one step of the graph.

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


def work_of_the_loop(blocks, dim):
    """(float operations of the products, bytes of rows) of as many blocks in the compiled loop.

    Only pairs inside the window count. A row is read from memory and written back; what lies between stays in the
    cache. The sigmoid is not counted: no large product has one.
    """
    pairs = blocks.blocks * blocks.tokens * (2 * blocks.window + blocks.random)
    rows = blocks.blocks * (2 * blocks.tokens + 2 * blocks.window + blocks.random)
    return 3 * 2 * pairs * dim, 2 * rows * dim * 4


def seconds_of_loop_parts(vocab_size, dim, blocks, steps=50):
    """Seconds of the compiled loop for a step's blocks: products, sigmoid, other work in the cache, rows from memory.

    Products and sigmoid are measured alone. Other work is what is missing to the loop on one block again and again;
    rows from memory are what is missing to the loop on blocks of a text's words.
    """
    from helpers.word2vec import kernel
    from helpers.word2vec.block_trainer import pair_weights

    around = blocks.tokens + 2 * blocks.window
    rng = np.random.default_rng(0)
    tables = list(rng.random((2, vocab_size, dim), np.float32) / dim)
    rates = np.zeros((2, vocab_size), np.float32)
    words = (rng.zipf(1.1, [steps * blocks.blocks, around + blocks.random]) % vocab_size).astype(np.int32)
    tiles = kernel.tile_weights(pair_weights(blocks)[1], blocks)
    errors = np.zeros_like(tiles)
    rows = rng.random((tiles.shape[1], dim), np.float32) / dim
    sums = np.zeros((2, dim), np.float32)
    columns = kernel.whole_tiles(2 * blocks.window + 2) + kernel.whole_tiles(blocks.random)
    columns = min(columns, tiles.shape[1])

    def trained(part):
        settings = blocks.window, blocks.random, 0.0, blocks.largest_logit
        return seconds_of(lambda: kernel.train_words(*tables, *rates, part, tiles, *settings)) / steps

    products = seconds_of(lambda: repeat_products(rows, errors, columns, sums, len(words))) / steps
    sigmoid = seconds_of(lambda: repeat_sigmoid(errors, tiles, columns, len(words))) / steps
    again, text = trained(np.repeat(words[:1], len(words), axis=0)), trained(words)
    rest = max(0.0, again - products - sigmoid)
    return {"products": products, "sigmoid": sigmoid, "in cache": rest, "rows from memory": max(0.0, text - again)}


def measured(spent, vocab_size, dim, blocks, graph=True):
    """On a rank, after training: a dict of all that `describe` needs."""
    flops, copied = machine_speed()
    if graph:
        alone = seconds_of_parts(vocab_size, dim, blocks)
        operations, gathered, scattered = work_of_a_step(blocks, dim)
        bound = operations / flops, gathered / copied, scattered / copied
    else:
        alone = seconds_of_loop_parts(vocab_size, dim, blocks)
        operations, moved = work_of_the_loop(blocks, dim)
        bound = operations / flops, 0.0, 0.0, moved / copied
    return {
        "spent": dict(spent),
        "gflops": flops / 1e9,
        "gb_per_s": copied / 1e9,
        "step": spent["training"] / spent["steps"],
        "alone": alone,
        "bound": dict(zip(alone, bound, strict=True)),
    }


def of_bound(bound, seconds):
    """ " (82%)", or nothing for a part without a bound."""
    return f" ({bound / seconds:.0%})" if bound and seconds else ""


def describe(found):
    """Some lines about what `measured` found on a rank."""
    spent, alone, bound = found["spent"], found["alone"], found["bound"]
    whole = sum(spent[part] for part in PARTS if part in spent)
    shares = ", ".join(f"{part} {spent[part] / whole:.1%}" for part in PARTS if part in spent)
    beside = f"; Horovod {spent['Horovod'] / whole:.1%}, beside the others" if "Horovod" in spent else ""
    parts = ", ".join(f"{part} {1e6 * alone[part]:.0f}" + of_bound(bound[part], alone[part]) for part in alone)
    speeds = f"{found['gflops']:.0f} GFLOP/s in a large product, {found['gb_per_s']:.1f} GB/s in a copy"
    lines = [f"it compiled, or read what was compiled, in {found['compiling']:.1f} s"] if "compiling" in found else []
    return lines + [
        f"its time: {shares}{beside}",
        f"this rank has {speeds}; a step at these speeds takes {1e6 * sum(bound.values()):.0f} us",
        f"a step takes {1e6 * found['step']:.0f} us, {sum(bound.values()) / found['step']:.0%} of that speed; "
        f"alone, in us: {parts}",
    ]
