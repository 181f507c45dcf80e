"""Checkpoints of a resumable run: one file, whole or not at all."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from lesson_parts.resumable import Progress

FORMAT, VERSION = "word2vec checkpoint", 1
FIELDS = "step", "epoch", "position", "random"


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
    arrays = {f"v{i}": v.numpy() for i, v in enumerate(variables)}
    header = {name: getattr(progress, name) for name in FIELDS}
    header |= {"format": FORMAT, "version": VERSION, "identity": identity}
    content = io.BytesIO()
    np.savez(content, header=json.dumps(header), **arrays)
    try:
        with open(beside, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        left = "the previous file is unchanged" if path.exists() else "no file was there before"
        why = f"{error.strerror or error}; {left}"
        raise OSError(f"{path} is not saved: {why}") from None
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)  # the new name too
    os.close(folder)


def read_checkpoint(path):
    """Return the header and the arrays of a file; ValueError, one sentence, if it is not a whole one."""
    try:
        with np.load(path) as file:
            header = json.loads(str(file["header"]))
            arrays = [file[f"v{i}"] for i in range(len(file.files) - 1)]
    except (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no whole checkpoint: {error}") from None
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        found = f"{header.get('format')}, version {header.get('version')}"
        raise ValueError(f"{path} is a {found}; this program reads a {FORMAT}, version {VERSION}")
    if not header.keys() >= set(FIELDS):
        raise ValueError(f"{path} lacks one of {', '.join(FIELDS)}")
    return header, arrays


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
    there = header.get("identity") or {}
    for name, value in (identity or {}).items():
        if there.get(name) != value:
            raise ValueError(f"{path}: {name} is {there.get(name)}, not {value}")
    found = [(a.shape, a.dtype.name) for a in arrays]
    wanted = [(tuple(v.shape), v.dtype.name) for v in variables]
    for i, (one, other) in enumerate(zip(found, wanted)):
        if one != other:
            raise ValueError(f"{path}: variable {i} is {one}, not {other}")
    if len(found) != len(wanted):
        raise ValueError(f"{path} has {len(found)} variables, the model {len(wanted)}")
    for variable, array in zip(variables, arrays):
        variable.assign(array)
    return Progress(**{name: header[name] for name in FIELDS})
