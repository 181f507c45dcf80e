"""What ranks of `word2vec.py --elastic` go on from when one of them is lost or a new one comes: copies in memory.

Horovod Elastic ends the training on all ranks, forms them anew and trains again, from what rank 0, which is one of
those that survived, has copied last.
"""

import time

import numpy as np
from horovod.common.elastic import ObjectState


class Kept(ObjectState):
    """The tables of this rank and the common ones, as they were between two intervals.

    Parameters
    ----------
    hvd : module
        horovod.tensorflow, after hvd.init().
    every : float
        Seconds from one copy to the next.

    Attributes
    ----------
    step, steps : int
        Intervals done when the copy was made, of so many in all; 0 of 0 before the first copy. Equal on all ranks.
    """

    def __init__(self, hvd, every=10.0):
        self._hvd = hvd
        self._every = every
        self._copied = time.monotonic()
        self._tables = None  # of this rank, and the common ones
        super().__init__(hvd.broadcast_object, hvd.rank, step=0, steps=0)

    def due(self):
        """Whether it is time for the next copy."""
        return time.monotonic() - self._copied > self._every

    def keep(self, step, steps, tables, common):
        """Copy the state, then look for new hosts and hosts that leave.

        Raises
        ------
        HostsUpdatedInterrupt
            On all ranks at once: `hvd.elastic.run` forms the ranks anew.
        """
        self._tables = [table.copy() for table in tables], [table.copy() for table in common]
        self.step, self.steps = step, steps
        self._copied = time.monotonic()
        self.commit()

    def sync(self):
        """Agree on the copy of rank 0. A rank that has another one, or none, will begin with the common tables."""
        own = self.step, self.steps
        super().sync()
        if own != (self.step, self.steps):
            self._tables = None

    def restore_into(self, tables, common):
        """Give the tables what was copied: float32 arrays [V, dim]; the common ones are those of rank 0."""
        own, shared = self._tables or (None, common)
        for table, value in zip(common, shared, strict=True):
            table[:] = self._hvd.broadcast(value, 0)
        for table, value in zip(tables, own or common, strict=True):
            np.copyto(table, value)
