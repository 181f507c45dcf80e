"""Of lesson 09: ways of a training step take turns on the ranks. Without matplotlib, as ranks import it."""

from functools import partial

from lesson_parts.rotation import take_turns


def time_in_turns(time_it, ways, turns):
    """Time ways of a training step, turn by turn; all ranks call it with the same ways.

    A turn times every way once, and each turn begins with another one. Before a way the ranks wait for each other.

    Parameters
    ----------
    time_it : function
        time_it(step, batches) -> float.
    ways : dict of {str: (function, list, int)}
        Of each way its step, its batches, and how many ranks work, from rank 0 on, while the others wait.
    turns : int

    Returns
    -------
    dict of {str: list}
        Of each way what `time_it` returned in each turn; None on a rank that waited.
    """
    import horovod.tensorflow as hvd
    import tensorflow as tf

    def one_turn(step, batches, workers):
        hvd.allreduce(tf.constant(0.0))
        return time_it(step, batches) if hvd.rank() < workers else None

    for step, batches, workers in ways.values():
        if hvd.rank() < workers:
            step(*batches[0])  # TensorFlow compiles it
    return take_turns({way: partial(one_turn, *what) for way, what in ways.items()}, turns)
