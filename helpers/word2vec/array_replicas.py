"""The exchange of helpers/exchange/merging.py on the arrays that the kernel trains, by compiled loops."""

import numpy as np
import tensorflow as tf

from helpers.exchange import merging
from helpers.word2vec.kernel import add_changes, merge_in_place, take_changes


def make_array_exchange(tables, common, allreduce, merge_changes=merging.merge_changes):
    """Do what `make_exchange` does, for arrays, with the same message: all changes, then their squared lengths."""
    dim = tables[0].shape[1]
    another_rule = merge_changes is not merging.merge_changes

    def parts(message, n):
        changes, squares = np.split(message, [len(tables) * n * dim])
        return changes.reshape(len(tables), n, dim), squares.reshape(len(tables), n)

    def changed(rows):
        message = np.empty(len(tables) * len(rows) * (dim + 1), np.float32)
        for table, shared, own, squares in zip(tables, common, *parts(message, len(rows))):
            take_changes(table, shared, rows, own, squares)
        return message

    def travel(message):
        return allreduce(tf.constant(message)).numpy()

    def apply(rows, message, sums):
        own, _ = parts(message, len(rows))
        total, squares = parts(sums, len(rows))
        if another_rule:
            total = np.array(merge_changes(total, squares[:, :, np.newaxis]))
        for i, (table, shared) in enumerate(zip(tables, common)):
            if not another_rule:
                merge_in_place(total[i], squares[i])
            add_changes(table, shared, rows, own[i], total[i])

    return merging.beside_training(changed, travel, apply)
