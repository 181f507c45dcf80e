"""How many tokens the steps of lesson 29 have, and how long they take. Free of matplotlib: ranks import it."""

import time

import numpy as np
import tensorflow as tf


def tokens_of_steps(sources, size, steps):
    """Count the tokens that each rank reads and writes in the first steps of each way: {way: array, [steps, ranks]}.

    Parameters
    ----------
    sources : function
        sources(rank, size) returns {way: generator of batches (x, y)}.
    size, steps : int
        How many ranks, and how many steps.
    """
    found = {}
    for way in sources(0, size):
        of_ranks = [sources(rank, size)[way] for rank in range(size)]
        found[way] = np.array([[_tokens(*next(batches)) for batches in of_ranks] for _ in range(steps)])
    return found


def _tokens(x, y):
    return x.shape[1] + y.shape[1]


def timed_turns(step, sources, turns, steps, hvd):
    """Time a step on the batches of several ways, which take turns step by step, in an order drawn anew.

    All ranks call it together; the order is the same on each of them, and every turn has the same batches.

    Parameters
    ----------
    step : function
        step(*batch) returns a tensor; it exchanges nothing.
    sources : function
        sources(rank, size) returns {way: generator of batches}.
    turns, steps : int
        Steps of each way in a turn.
    hvd : module
        horovod.tensorflow

    Returns
    -------
    computing, done : array of float, [turns, ways, steps]
        Seconds from the beginning of a step until this rank has computed, and until all have: then an allreduce of
        one number returns.
    """
    computing, done = [], []
    for turn in range(turns):
        batches = list(sources(hvd.rank(), hvd.size()).values())
        seconds = np.zeros([2, len(batches), steps])
        hvd.allreduce(tf.zeros(1))  # all begin at the same time
        for number in range(steps):
            order = np.random.default_rng([turn, number]).permutation(len(batches))
            for way in order:
                batch = next(batches[way])
                begin = time.perf_counter()
                step(*batch).numpy()
                seconds[0, way, number] = time.perf_counter() - begin
                hvd.allreduce(tf.zeros(1)).numpy()
                seconds[1, way, number] = time.perf_counter() - begin
        computing.append(seconds[0])
        done.append(seconds[1])
    return np.array(computing), np.array(done)
