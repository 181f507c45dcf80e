"""What `helpers.cluster.ranks` runs on the engines."""

import os
import socket
import sys
from dataclasses import dataclass

import joblib
import psutil

from helpers.cluster import environment, standing

_before = {}  # the environment of this engine before it became a rank
_read_by_horovod = {}  # the settings of Horovod when it was initialised


@dataclass(frozen=True)
class EngineInfo:
    """Who an engine is and what its Horovod can do.

    Attributes
    ----------
    pid : int
        Of its process.
    started : float
        When that was, in seconds since 1970.
    host : str
        The name of its host.
    address : str
        Where that name leads, from the host's table of names; "" if nowhere.
    log : str
        The file that its standard error goes to; "" where the system does not tell.
    cpus : list of int
        The numbers of the cores that it may use; empty on a Mac, where all engines of a host share all cores.
    cores : int
        How many, or fewer where a container grants less.
    mpi_rank : int or None
        Its rank, if mpiexec started it.
    gloo, mpi : bool
        What its Horovod was built with.
    size : int or None
        How many ranks its Horovod has; None as long as that is not initialised.
    settings : dict
        What its Horovod read when it was initialised over MPI.
    is_rank : bool
        Whether it is a rank of somebody who has not closed it.
    id : int or None
        The controller's number for it, which the engine itself does not know.
    """

    pid: int
    started: float
    host: str
    address: str
    log: str
    cpus: list
    cores: int
    mpi_rank: int | None
    gloo: bool
    mpi: bool
    size: int | None
    settings: dict
    is_rank: bool
    id: int | None = None


def describe():
    """Tell who this engine is: its EngineInfo, without the id."""
    _native_output_to_log()
    import horovod.tensorflow as hvd

    me = psutil.Process()
    mpi_rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
    return EngineInfo(
        pid=me.pid,
        started=me.create_time(),
        host=socket.gethostname(),
        address=_own_address(),
        log=_log_file(),
        cpus=me.cpu_affinity() if hasattr(me, "cpu_affinity") else [],
        cores=joblib.cpu_count(),  # heeds affinity and a container's quota, also on a Mac
        mpi_rank=None if mpi_rank is None else int(mpi_rank),
        gloo=bool(hvd.gloo_built()),
        mpi=bool(hvd.mpi_built()),
        size=hvd.size() if hvd.is_initialized() else None,
        settings=dict(_read_by_horovod),
        is_rank=bool(_before),
    )


def initialise(members, threads, stacks, env):
    """Set threads and environment and call hvd.init().

    Parameters
    ----------
    members : list of int or None
        Over MPI the ranks that take part, of MPI's numbering, in the order of ours; None over Gloo.
    threads : int
        Of TensorFlow and BLAS.
    stacks : str
        A folder of the kernel's host, where this engine writes its stack when it is asked for it.
    env : dict
        Name to value, see `helpers.cluster.environment`.

    Returns
    -------
    tuple of int
        Rank and size, as Horovod says.
    """
    _leave_environment()  # of one that was killed before it could give this engine back
    _before.update(environment.enter(env))
    environment.limit_threads(threads)
    environment.keep_autograph_from_horovod()
    standing.answer_signal(os.path.join(stacks, str(os.getpid())))
    import horovod.tensorflow as hvd

    if members is not None and hvd.is_initialized():  # MPI can be initialised only once in a process
        return hvd.rank(), hvd.size()
    if hvd.is_initialized():
        hvd.shutdown()
    hvd.init(comm=members)
    _read_by_horovod.clear()
    if members is not None:
        _read_by_horovod.update(horovod_settings(env))
    return hvd.rank(), hvd.size()


def horovod_settings(env):
    """Those of a rank's environment that Horovod reads when it is initialised, and not again."""
    return {name: value for name, value in env.items() if name.startswith("HOROVOD_")}


def release(over_gloo):
    """Be no rank any more: the environment is as it was, and over Gloo this engine can join others."""
    import horovod.tensorflow as hvd

    if over_gloo:
        hvd.shutdown()
    _leave_environment()


def _leave_environment():
    environment.leave(_before)
    _before.clear()


def _own_address():
    """Where this host's own name leads, from its table of names; "" if nowhere."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def _native_output_to_log():
    """Let what C++ code prints (Horovod's warnings, TensorFlow's log) go to the engine's log, not to the cells."""
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        original = getattr(stream, "_original_stdstream_copy", None)  # ipykernel gives no other way back
        if original is not None:
            os.dup2(original, descriptor)


def _log_file():
    """The file that standard error goes to, or "" where the system does not tell."""
    link = f"/proc/{os.getpid()}/fd/2"
    return os.readlink(link) if os.path.exists(link) else ""
