"""Of lesson 20: files with tables, of which the newest is read. A module of its own, as ranks import it."""

from pathlib import Path

import numpy as np

from helpers.text.files import written_whole


class TableFiles:
    """Files in a folder, each with the tables of a training as they were before a step or a batch.

    Parameters
    ----------
    folder : str
        There already.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, name, number):
        """The file, a Path, in which the tables of a training are that were saved before this step."""
        return self.folder / f"{name}-{number}.npz"

    def save(self, name, number, tables):
        """Write a new file, which then takes its name in one move.

        A process that is killed meanwhile leaves no half-written file of that name.

        Parameters
        ----------
        name : str
            Of the training.
        number : int
            Of the next step or batch.
        tables : list of tf.Variable
        """
        with written_whole(self.path(name, number), "wb") as file:
            np.savez(file, *[each.numpy() for each in tables])

    def newest(self, name):
        """The number of a training's last file, and its tables, a list of arrays."""
        paths = self.folder.glob(f"{name}-[0-9]*.npz")
        number = max(int(path.stem.rpartition("-")[2]) for path in paths)
        with np.load(self.path(name, number)) as saved:
            return number, [saved[each] for each in saved.files]

    def forget(self, name):
        """Delete all files of a training."""
        for path in self.folder.glob(f"{name}-*"):  # a killed process may have left a part
            path.unlink()
