"""Checkpoints of `train_blocks`: saved between two intervals, whole or not at all, for any number of ranks.

FOLDER/checkpoint.json says which run it is and how far it was. Beside it are the tables of each rank and, on ranks,
those that they have in common. The .json is written last: whoever finds it finds all of the others. Hosts that do not
share FOLDER can go on with the same ranks on the same hosts; with another number of ranks, rank 0 reads all files.
"""

import json
import os
import socket
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from helpers.text.files import written_whole

CODES = {  # how a program ends for which error
    FileNotFoundError: os.EX_NOINPUT,
    ValueError: os.EX_DATAERR,
    OSError: os.EX_IOERR,
    MemoryError: os.EX_OSERR,
}


class Failure(Exception):
    """One sentence and the program's exit code, the same on all ranks."""


def together(hvd, work, *args):
    """What work(*args) returns on this rank. If it fails on any rank, all of them raise the same Failure."""
    found = failure = None
    try:
        found = work(*args)
    except tuple(CODES) as error:
        code = next(code for kind, code in CODES.items() if isinstance(error, kind))
        failure = f"{socket.gethostname()}: {error}" if hvd else str(error), code
    for failed in hvd.allgather_object(failure) if hvd else [failure]:
        if failed:
            raise Failure(*failed)
    return found


def save(folder, header, step, tables, common, hvd):
    """Write the state between two intervals, then remove the one before."""
    rank, ranks = (hvd.rank(), hvd.size()) if hvd else (0, 1)

    def write_tables():
        if not all(np.isfinite(table).all() for table in tables):
            raise ValueError("the tables hold NaN or infinity: take a smaller --alpha")
        write_arrays(folder / f"{step}-{rank}-of-{ranks}.npy", tables)
        if hvd and rank == 0:
            write_arrays(folder / f"{step}-common-of-{ranks}.npy", common)

    def write_header():
        if rank == 0:
            with written(folder / "checkpoint.json") as file:
                file.write(json.dumps({**header, "step": step, "ranks": ranks}, indent=1).encode())

    together(hvd, write_tables)
    together(hvd, write_header)
    remove(folder, but=f"{step}-")


def remove(folder, but=None):
    """Remove what is not of one step, or all."""
    for old in folder.glob("*-of-*.npy*"):
        if but is None or not old.name.startswith(but):
            old.unlink(missing_ok=True)
    if but is None:
        (folder / "checkpoint.json").unlink(missing_ok=True)


def write_arrays(path, tables):
    with written(path) as file:
        only_write = SimpleNamespace(write=file.write)  # with a file numpy would not say why it cannot write
        for table in tables:
            np.save(only_write, table)


@contextmanager
def written(path):
    """A file of bytes that takes its place when it is whole and on the disk. OSError with its name."""
    try:
        with written_whole(path, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error


def read_header(folder, run):
    """What checkpoint.json says, or None if there is none. ValueError if it is of another run than this dict."""
    path = Path(folder) / "checkpoint.json"
    if not path.exists():
        return None
    try:
        header = json.loads(path.read_text())
        differ = [name for name, value in run.items() if header[name] != value]
        header["step"] / header["steps"] + header["ranks"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no checkpoint of this program: {error!r}") from None
    if differ:
        name = differ[0]
        values = f": {run[name]} and not {header[name]}" if not isinstance(run[name], str) else ""
        raise ValueError(f"the checkpoint in {folder} is of another {name}{values}; give another folder")
    return header


def restore(folder, header, tables, common, hvd):
    """Give the tables their values; ranks of another number begin with what those would have ended with."""
    rank, ranks = (hvd.rank(), hvd.size()) if hvd else (0, 1)
    same = header["ranks"] == ranks

    def read():
        own = read_arrays(folder, header, rank) if same else None
        if rank > 0:
            return own, None
        return own, (read_arrays(folder, header, "common") if same and ranks > 1 else own or merged(folder, header))

    own, shared = together(hvd, read)
    if rank == 0:
        assign(common, shared)
    if hvd:
        assign(common, [hvd.broadcast(table, 0) for table in common])
    assign(tables, own or common)


def read_arrays(folder, header, whose):
    path = folder / f"{header['step']}-{whose}-of-{header['ranks']}.npy"
    try:
        with open(path, "rb") as file:
            return [np.load(file), np.load(file)]
    except (OSError, EOFError, ValueError) as error:
        needs = "if hosts do not share this folder, the same ranks have to run on the same hosts"
        raise ValueError(f"{path} cannot be read ({error}): {needs}") from None


def assign(tables, values):
    for table, value in zip(tables, values, strict=True):
        table[:] = value


def merged(folder, header):
    """The two tables after an exchange of all rows between the ranks that wrote the checkpoint."""
    from helpers.word2vec.schedule import bounded_changes

    if header["ranks"] == 1:
        return read_arrays(folder, header, 0)
    common = read_arrays(folder, header, "common")
    totals = [np.zeros_like(table) for table in common]
    squares = [np.zeros((len(table), 1), np.float32) for table in common]
    for rank in range(header["ranks"]):
        for i, table in enumerate(read_arrays(folder, header, rank)):
            change = table - common[i]
            totals[i] += change
            squares[i] += (change**2).sum(axis=1, keepdims=True)
    return [table + bounded_changes(*change).numpy() for table, *change in zip(common, totals, squares, strict=True)]
