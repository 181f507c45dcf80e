"""Checkpoints of a resumable run: one file, whole or not at all."""

import io
import os
from pathlib import Path

import numpy as np

from lesson_parts.resumable import Progress
from lesson_parts.whole_files import FIELDS, as_arrays, not_saved, read_checkpoint, refuse_misfit, sync_folder


def save_checkpoint(path, variables, progress, identity=None):
    """Write a file beside, sync it, rename it.

    Parameters
    ----------
    path : str or Path
    variables : list of tf.Variable
        Or what else has a method `numpy`.
    progress : Progress
    identity : dict of str to int, float or str, optional
        What a run must have in common with this file to go on from it; see `restore_checkpoint`.

    Raises
    ------
    OSError
        If that fails. At this path there is then the previous file or the new one, never a part of one.
    """
    path = Path(path)
    beside = path.with_name(path.name + ".part")
    content = io.BytesIO()
    np.savez(content, **as_arrays(variables, progress, identity))
    try:
        with open(beside, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise not_saved(path, error) from None
    sync_folder(path.parent)


def restore_checkpoint(path, variables, identity=None):
    """Assign all variables and return the Progress; or assign none and raise ValueError.

    Parameters
    ----------
    path : str or Path
    variables : list of tf.Variable
    identity : dict, optional
        ValueError if the file was saved with another one; without it nothing is compared.
    """
    header, arrays = read_checkpoint(path)
    refuse_misfit(path, header, arrays, variables, identity)
    for variable, array in zip(variables, arrays):
        variable.assign(array)
    return Progress(**{name: header[name] for name in FIELDS})
