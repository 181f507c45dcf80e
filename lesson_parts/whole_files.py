"""What lesson 21's checkpoints need around them: arrays to save, reading, refusals.

Free of TensorFlow, so that a process that does nothing but save starts at once.
"""

import hashlib
import json
import os
import zipfile
from dataclasses import asdict

import numpy as np

FORMAT, VERSION = "word2vec checkpoint", 1
FIELDS = "step", "epoch", "position", "random"
UNREADABLE = OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile  # what NumPy raises


def identity_of(recipe, text):
    """Return what a run must have in common with a file to go on from it.

    Parameters
    ----------
    recipe : Recipe
        Or another dataclass of numbers and str.
    text : array
        Ids.

    Returns
    -------
    dict of str to int, float or str
        The fields of the recipe, and under "text" the beginning of a hash.
    """
    digest = hashlib.sha256(text.tobytes()).hexdigest()
    return {**asdict(recipe), "text": digest[:12]}


def as_arrays(variables, progress, identity=None):
    """Return what `np.savez` writes into a checkpoint.

    Parameters
    ----------
    variables : list of tf.Variable
        Or what else has a method `numpy`.
    progress : Progress
        Or what else has its attributes.
    identity : dict of str to int, float or str, optional
        See `identity_of`.

    Returns
    -------
    dict of str to array or str
        The variables as v0, v1 and so on; as "header" a text in JSON, which holds the progress and the identity.
    """
    header = {name: getattr(progress, name) for name in FIELDS}
    header |= {"format": FORMAT, "version": VERSION, "identity": identity}
    arrays = {f"v{i}": variable.numpy() for i, variable in enumerate(variables)}
    return {"header": json.dumps(header), **arrays}


def read_checkpoint(path):
    """Return the header and the arrays of a file; ValueError, one sentence, if it is not a whole one."""
    try:
        with np.load(path) as file:
            header = json.loads(str(file["header"]))
            arrays = [file[f"v{i}"] for i in range(len(file.files) - 1)]
    except UNREADABLE as error:
        raise ValueError(f"{path} is no whole checkpoint: {error}") from None
    refuse_other_format(path, header)
    return header, arrays


def refuse_other_format(path, header):
    """Raise ValueError, one sentence, if a header is not that of this format and version, or lacks a field."""
    if not isinstance(header, dict):
        raise ValueError(f"{path} is no whole checkpoint: its header is a {type(header).__name__}")
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        found = f"{header.get('format')}, version {header.get('version')}"
        raise ValueError(f"{path} is a {found}; this program reads a {FORMAT}, version {VERSION}")
    if not header.keys() >= set(FIELDS):
        raise ValueError(f"{path} lacks one of {', '.join(FIELDS)}")


def refuse_misfit(path, header, arrays, variables, identity=None):
    """Raise ValueError, one sentence, if what was read is not of this model or not of this run.

    Parameters
    ----------
    path : str or Path
        For the sentence.
    header, arrays
        From `read_checkpoint`.
    variables : list of tf.Variable
        Number, shapes and types are compared.
    identity : dict, optional
        Compared with that of the file; without it nothing is.
    """
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


def not_saved(path, error):
    """Return the OSError, one sentence, for a file that could not be written: with its path, and what is there now."""
    left = "the previous file is unchanged" if path.exists() else "no file was there before"
    return OSError(f"{path} is not saved: {error.strerror or error}; {left}")


def sync_folder(folder):
    """Force the names in a folder to the disk; OSError, one sentence, if that fails."""
    try:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        raise OSError(f"the new name in {folder} may not be on the disk: {error.strerror or error}") from None
