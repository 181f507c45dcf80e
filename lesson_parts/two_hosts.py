"""Lesson 24 on its two ranks: steps are made ready and timed, ways of training take turns, logs are read.

Ranks import it, so nothing here draws.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import tensorflow as tf

import lesson_parts.kept as kept
from helpers.exchange.cost_model import bytes_sent, median_seconds
from lesson_parts.rotation import take_turns
from lesson_parts.strategies import batches, start_tables

EXCHANGES = {  # of a step, the collective and the types of what it sends
    "canonical": ("allgather", ["float32"] * 3 + ["int32", "int64"]),
    "hot and cold": ("allreduce", ["float32"]),
}


def get_ready(strategies, ids, vocab):
    """On each rank: make batches and steps, which stay in `kept.ready`.

    kept.ready[name] is (source, alone, together, tables): batches without end, a step without an exchange, a step with
    it, and the tables of the latter. Both steps are compiled.

    Parameters
    ----------
    strategies : dict of str to Strategy
        By name, see `lesson_parts.strategies.STRATEGIES`.
    ids : int array [n]
        The text, the same on all ranks; each draws batches of its own.
    vocab : Vocab
    """
    import horovod.tensorflow as hvd

    kept.ready = {}
    for name, strategy in strategies.items():
        made = batches(strategy, ids, vocab, np.random.default_rng(hvd.rank()))
        source = cycle([next(made) for _ in range(20)])
        alone = strategy.make(start_tables(vocab), None)
        tables = start_tables(vocab)
        together = strategy.make(tables, hvd)
        for step in (alone, together):
            speed_of(step, source, 1)
        kept.ready[name] = source, alone, together, tables


def speed_of(step, source, steps):
    """Do a step that does not count, then some that do.

    Returns
    -------
    speed : float
        Pairs/s of this process.
    sent : float
        Bytes that it sent for each pair.
    """
    step(*next(source), 0.1).numpy()
    pairs, sent_before = 0, bytes_sent()
    begin = time.perf_counter()
    for _ in range(steps):
        batch = next(source)
        loss = step(*batch, 0.1)
        pairs += len(batch[0])
    loss.numpy()  # waits until all is done
    seconds = time.perf_counter() - begin
    return pairs / seconds, (bytes_sent() - sent_before) / pairs


def exchange_seconds(name, sizes=None, repeats=50):
    """On each rank: the seconds of an exchange, the median of some.

    Parameters
    ----------
    name : str
        Of EXCHANGES: whose collective and types.
    sizes : sequence of int, optional
        How many numbers each tensor has; by default one each, so that what is measured is the latency.
    repeats : int
    """
    import horovod.tensorflow as hvd

    kind, types = EXCHANGES[name]
    tensors = {}
    for i, (dtype, size) in enumerate(zip(types, sizes or [1] * len(types), strict=True)):
        tensors[f"{kind}_{i}_of_{size}"] = tf.ones([size], dtype)
    collective = getattr(hvd, kind)

    @tf.function
    def exchange():
        return [collective(x, name=tensor) for tensor, x in tensors.items()]

    return median_seconds(exchange, repeats)


def in_turns(measure, steps_of, turns):
    """Let some ways take turns; each turn begins with another one, to spread what else the machine does over all.

    Parameters
    ----------
    measure : function
        measure(way, steps) -> float.
    steps_of : dict
        Way: its steps in a turn.
    turns : int

    Returns
    -------
    dict
        Way: what was measured in each turn, float array [turns].
    """
    found = take_turns({way: partial(measure, way, steps) for way, steps in steps_of.items()}, turns)
    return {way: np.array(numbers) for way, numbers in found.items()}


def meanwhile(work, fn, *args):
    """Call work() in a thread while fn(*args) runs; returns the results of both."""
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(work)
        found = fn(*args)
        return other.result(), found


def logged_losses(folder):
    """Read what TensorBoard would draw: the (step, value) of all event files in a folder, in the order of their names.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    list of (int, float)
    """
    from tensorflow.python.summary.summary_iterator import summary_iterator

    tf.get_logger().setLevel("ERROR")  # it would warn that readers will change
    return [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for file in sorted(Path(folder).glob("events*"))
        for event in summary_iterator(str(file))
        for value in event.summary.value
    ]
