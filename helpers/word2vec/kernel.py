"""The block trainer as one loop: the same mathematics as `block_changes`, compiled by numba for this processor.

The graph writes the gathered rows, the logits and the changes of 32 blocks to memory and reads them again. Here one
block is trained from its first row to its last before the next one begins, and what lies between is small:

- *Rows stay in the cache.* A block of 16 words with 5 around it and 22 random ones needs 64 rows, 32 KB in 128
  dimensions. They are copied once, next to each other, and then read many times from the processor's first cache.
- *Tiles of 2 x 4.* A dot product alone loads two numbers for each multiplication; 2 rows by 4 rows load six numbers for
  eight. So the processor multiplies all the time, and does not wait for its loads.
- *Only columns inside the window.* The product of matrices also computes the pairs that are too far apart, with weight
  0: a third of all.
- *No slices.* `a[i]` of a matrix makes a new array, with a reference to count. Loops over `a[i, k]` are compiled to
  vector instructions.
- *Each row is written once*, when all its pairs have been added up.

Words are trained in place, without a lock and without Python's (the GIL): other threads work meanwhile.
"""

import numpy as np
from numba import njit

TILE = 4  # columns of a tile, see above; its rows are two
FAST = {"fastmath": True, "nogil": True, "error_model": "numpy"}
fast = njit(**FAST)


def compiled_once(function):
    """Compile a function at its first call, and keep that for the next start where some folder can be written.

    What it calls is compiled into it: only what Python calls needs this.
    """
    try:
        return njit(function, cache=True, **FAST)
    except RuntimeError:  # neither the folder of this file nor the user's cache
        return njit(function, **FAST)


@fast
def whole_tiles(n):
    """Round up to whole tiles."""
    return -(-n // TILE) * TILE


@fast
def sigmoid(x):
    """Compute 1 / (1 + exp(-x)) to 1e-6, by (1 + tanh(x / 2)) / 2.

    tanh is a quotient of two polynomials (as in Eigen, the library below TensorFlow): without a branch or a call the
    compiler can compute eight at once.
    """
    x = np.float32(0.5) * min(max(x, np.float32(-16)), np.float32(16))
    x2 = x * x
    above = np.float32(-2.76076847742355e-16)
    above = above * x2 + np.float32(2.00018790482477e-13)
    above = above * x2 + np.float32(-8.60467152213735e-11)
    above = above * x2 + np.float32(5.12229709037114e-08)
    above = above * x2 + np.float32(1.48572235717979e-05)
    above = above * x2 + np.float32(6.37261928875436e-04)
    above = above * x2 + np.float32(4.89352455891786e-03)
    below = np.float32(1.19825839466702e-06)
    below = below * x2 + np.float32(1.18534705686654e-04)
    below = below * x2 + np.float32(2.26843463243900e-03)
    below = below * x2 + np.float32(4.89352518554385e-03)
    return np.float32(0.5) + np.float32(0.5) * x * above / below


@fast
def dot_products(left, right, first, start, stop, logits):
    """Multiply rows first and first + 1 of `left` with rows start .. stop of `right`, four at a time."""
    for j in range(start, stop, TILE):
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = np.float32(0)
        for k in range(left.shape[1]):
            a, b = left[first, k], left[first + 1, k]
            r0, r1 = right[j, k], right[j + 1, k]
            r2, r3 = right[j + 2, k], right[j + 3, k]
            a0 += a * r0
            a1 += a * r1
            a2 += a * r2
            a3 += a * r3
            b0 += b * r0
            b1 += b * r1
            b2 += b * r2
            b3 += b * r3
        logits[first, j], logits[first, j + 1] = a0, a1
        logits[first, j + 2], logits[first, j + 3] = a2, a3
        logits[first + 1, j], logits[first + 1, j + 1] = b0, b1
        logits[first + 1, j + 2], logits[first + 1, j + 3] = b2, b3


@fast
def logits_to_errors(errors, weights, first, start, stop, label, largest):
    """Turn the logits of two rows into weight * (label - sigmoid), 0 where a logit is out of bounds."""
    for i in range(first, first + 2):
        for j in range(start, stop):
            logit = errors[i, j]
            error = weights[i, j] * (label - sigmoid(logit))
            errors[i, j] = error if abs(logit) < largest else np.float32(0)


@fast
def add_weighted(errors, i, rows, start, stop, sums):
    """Add rows start .. stop, weighted by rows i and i + 1 of `errors`, to the two rows of `sums`, four at a time."""
    for j in range(start, stop, TILE):
        a0, a1, a2, a3 = errors[i, j], errors[i, j + 1], errors[i, j + 2], errors[i, j + 3]
        b0, b1, b2, b3 = errors[i + 1, j], errors[i + 1, j + 1], errors[i + 1, j + 2], errors[i + 1, j + 3]
        for k in range(rows.shape[1]):
            r0, r1, r2, r3 = rows[j, k], rows[j + 1, k], rows[j + 2, k], rows[j + 3, k]
            sums[0, k] += a0 * r0 + a1 * r1 + a2 * r2 + a3 * r3
            sums[1, k] += b0 * r0 + b1 * r1 + b2 * r2 + b3 * r3


@fast
def copy_rows(table, words, block, first, stop, rows, at):
    """Copy the rows of the words in columns first .. stop of a block next to each other, into `rows` from `at` on."""
    for column in range(first, stop):
        word = words[block, column]
        for k in range(rows.shape[1]):
            rows[at + column - first, k] = table[word, k]


@fast
def write_row(table, word, rate, sums, i):
    """Add row i of `sums` to a word's row, times its rate, and make it 0 for the next one."""
    for k in range(sums.shape[1]):
        table[word, k] += rate * sums[i, k]
        sums[i, k] = 0


@fast
def write_two(table, rates, lr, words, block, first, stop, sums):
    """Write the two rows of `sums` to the words in columns first and first + 1, if that is below stop."""
    for column in range(first, min(first + 2, stop)):
        word = words[block, column]
        write_row(table, word, min(lr, rates[word]), sums, column - first)


def make_train_words(dot_products, add_weighted, logits_to_errors):
    """Make the loop over blocks from its three inner loops, see `train_words`."""

    @fast
    def train_words(
        center_table, context_table, center_rates, context_rates, words, weights, window, random, lr, largest
    ):
        dim = center_table.shape[1]
        lr, largest = np.float32(lr), np.float32(largest)
        everything = words.shape[1]
        around = everything - random
        tokens = around - 2 * window
        in_tiles, columns = weights.shape  # with rows of 0 up to whole tiles
        first_random = columns - whole_tiles(random)
        reach = whole_tiles(2 * window + 2)  # columns of two neighbouring centers
        centers = np.zeros((in_tiles + TILE, dim), np.float32)
        contexts = np.zeros((columns + TILE, dim), np.float32)
        # Never cleared: each block writes the same squares, and all others stay 0.
        errors = np.zeros((in_tiles + TILE, columns + TILE), np.float32)
        sums = np.zeros((2, dim), np.float32)
        for block in range(len(words)):
            copy_rows(center_table, words, block, window, window + tokens, centers, 0)
            copy_rows(context_table, words, block, 0, around, contexts, 0)
            copy_rows(context_table, words, block, around, everything, contexts, first_random)

            # E: the error of each pair. Columns that a tile has too many have weight 0.
            for i in range(0, tokens, 2):
                dot_products(centers, contexts, i, i, i + reach, errors)
                dot_products(centers, contexts, i, first_random, columns, errors)
                logits_to_errors(errors, weights, i, i, i + reach, np.float32(1), largest)
                logits_to_errors(errors, weights, i, first_random, columns, np.float32(0), largest)

            # E X: what the pairs of a center want of its row.
            for i in range(0, tokens, 2):
                add_weighted(errors, i, contexts, i, i + reach, sums)
                add_weighted(errors, i, contexts, first_random, columns, sums)
                write_two(center_table, center_rates, lr, words, block, window + i, window + tokens, sums)

            # E^T C: what they want of the rows around it and of the random ones.
            for j in range(0, around, 2):
                add_weighted(errors.T, j, centers, max(0, j - 2 * window), min(tokens, j + 2), sums)
                write_two(context_table, context_rates, lr, words, block, j, around, sums)
            for j in range(0, random, 2):
                add_weighted(errors.T, first_random + j, centers, 0, tokens, sums)
                write_two(context_table, context_rates, lr, words, block, around + j, everything, sums)

    return train_words


# Made, so numba cannot keep it: `train_words` is what is kept, with this compiled into it.
by_tiles = make_train_words(dot_products, add_weighted, logits_to_errors)


@compiled_once
def train_words(center_table, context_table, center_rates, context_rates, words, weights, window, random, lr, largest):
    """Train blocks one after the other, in place.

    Parameters
    ----------
    center_table, context_table : float32 array [V, dim]
        The row of id 0, of padding, must be 0 in both.
    center_rates, context_rates : float32 array [V]
        The highest learning rate of each row, 0 for id 0.
    words : int32 array [n, window + tokens + window + random]
        Blocks, see `cut_blocks`.
    weights : float32 array [rows, columns]
        From `tile_weights`.
    window, random : int
    lr : float
    largest : float
        A logit beyond +-largest changes nothing.
    """
    by_tiles(center_table, context_table, center_rates, context_rates, words, weights, window, random, lr, largest)


# ---- What ranks exchange


@compiled_once
def take_changes(table, common, rows, own, squares):
    """Write what a rank has changed in some rows into `own` [rows, dim], and its squared lengths into `squares`."""
    for i in range(len(rows)):
        word, total = rows[i], np.float32(0)
        for k in range(own.shape[1]):
            change = table[word, k] - common[word, k]
            own[i, k] = change
            total += change * change
        squares[i] = total


@compiled_once
def merge_in_place(total, squares):
    """Do what `merge_changes` does, for `total` [rows, dim] and `squares` [rows]; `total` becomes the change."""
    for i in range(len(total)):
        length = np.float32(0)
        for k in range(total.shape[1]):
            length += total[i, k] * total[i, k]
        factor = min(np.float32(1), squares[i] / length) if length > 0 else np.float32(0)
        for k in range(total.shape[1]):
            total[i, k] *= factor


@compiled_once
def add_changes(table, common, rows, own, merged):
    """Replace in a rank's rows the change of its own by that of all ranks, and add that to the common rows."""
    for i in range(len(rows)):
        word = rows[i]
        for k in range(own.shape[1]):
            common[word, k] += merged[i, k]
            table[word, k] += merged[i, k] - own[i, k]


# ---- What it is called with


def tile_weights(weights, blocks):
    """Lay out the weights of pairs in whole tiles; what is too much has weight 0.

    Parameters
    ----------
    weights : float32 array [tokens, window + tokens + window + random]
        From `pair_weights`.
    blocks : Blocks

    Returns
    -------
    float32 array [rows, columns]
        Rows: the words inside. Columns: the words inside and around, then the random words.
    """
    weights = np.asarray(weights)
    around = blocks.tokens + 2 * blocks.window
    rows = blocks.tokens + blocks.tokens % 2
    near = rows - 2 + whole_tiles(2 * blocks.window + 2)
    found = np.zeros((rows, near + whole_tiles(blocks.random)), np.float32)
    found[: blocks.tokens, :around] = weights[:, :around]
    found[: blocks.tokens, near : near + blocks.random] = weights[:, around:]
    return found
