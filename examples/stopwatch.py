"""Where the time of a rank goes in `train_blocks`."""

import time
from collections import Counter
from contextlib import contextmanager

PARTS = (
    "training",
    "cutting blocks",
    "gathering and adding",
    "waiting for Horovod",
    "last exchange",
)


class Stopwatch:
    """Measures what `train_blocks` does, by the arguments `watch` and `hvd` that it takes.

    Parameters
    ----------
    hvd : module, optional
        horovod.tensorflow.

    Attributes
    ----------
    hvd : Stopwatch or None
        In place of horovod.tensorflow; None in one process.
    spent : Counter
        Seconds of PARTS, of "Horovod" beside them, and the number of "steps".
    """

    def __init__(self, hvd=None):
        self.spent = Counter()
        self.hvd = self if hvd else None
        self._horovod = hvd
        self._trained = self._arrived = 0.0

    def __getattr__(self, name):
        """Return what is not measured: it is Horovod's own."""
        return getattr(self._horovod, name)

    def allreduce(self, tensor, **options):
        """Do and time Horovod's allreduce."""
        begin = time.perf_counter()
        total = self._horovod.allreduce(tensor, **options)
        self._arrived = time.perf_counter()
        self.spent["Horovod"] += self._arrived - begin
        return total

    @contextmanager
    def watch(self, part, steps=0):
        """Time a part of the work; see `train_blocks`."""
        before = self.spent["training"]
        begin = time.perf_counter()
        yield
        end = time.perf_counter()
        self.spent["steps"] += steps
        if part == "training":
            self._trained = end
        if part == "exchange":  # around the training
            waited = max(0.0, self._arrived - self._trained)
            self.spent["waiting for Horovod"] += waited
            training = self.spent["training"] - before
            self.spent["gathering and adding"] += end - begin - training - waited
        else:
            self.spent[part] += end - begin
