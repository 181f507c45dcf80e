"""What ranks of `word2vec.py --elastic` go on from when one of them is lost or a new one comes: copies in memory.

Horovod Elastic ends the training on all ranks, forms them anew and trains again, from the last copy of the rank that
has got furthest.
"""

import time

import numpy as np
from horovod.common.elastic import ObjectState
from horovod.common.exceptions import HostsUpdatedInterrupt


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
        self._root = 0  # the rank whose copy all of them take
        super().__init__(hvd.broadcast_object, hvd.rank, step=0, steps=0)

    def due(self):
        """Whether it is time for the next copy."""
        return time.monotonic() - self._copied > self._every

    def keep(self, step, steps, tables, common, save):
        """Copy the state, then look for new hosts and hosts that leave.

        Parameters
        ----------
        step, steps : int
        tables, common : list of float32 arrays [V, dim]
        save : function
            Called before ranks are formed anew: if a new host cannot start its rank, Horovod ends all of them.

        Raises
        ------
        HostsUpdatedInterrupt
            On all ranks at once: `hvd.elastic.run` forms the ranks anew.
        """
        self._copy(tables, common)
        self.step, self.steps = step, steps
        self._copied = time.monotonic()
        try:
            self.commit()
        except HostsUpdatedInterrupt:
            save()
            raise HostsUpdatedInterrupt(skip_sync=False) from None  # a host may come while others only leave

    def _copy(self, tables, common):
        if self._tables is None:
            self._tables = [table.copy() for table in tables], [table.copy() for table in common]
        else:
            own, shared = self._tables
            for kept, now in zip(own + shared, [*tables, *common], strict=True):
                np.copyto(kept, now)

    def sync(self):
        """Agree on the copy of the rank that has got furthest. One with another, or none, takes the common tables."""
        own = (self.step, self.steps) if self._tables else (0, 0)
        found = self._hvd.allgather_object(own)
        self._root = max(range(len(found)), key=lambda rank: found[rank][0] / max(found[rank][1], 1))
        self.step, self.steps = found[self._root]
        self.save()
        if own != found[self._root]:
            self._tables = None

    def restore_into(self, tables, common):
        """Give the tables what was copied: float32 arrays [V, dim]; the common ones are those of one rank."""
        own, shared = self._tables or (None, common)
        for table, value in zip(common, shared, strict=True):
            table[:] = self._hvd.broadcast(value, self._root)
        for table, value in zip(tables, own or common, strict=True):
            np.copyto(table, value)
        if self._tables is None:
            self._copy(tables, common)
