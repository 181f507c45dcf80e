"""What a rank's environment is: all of it is decided here.

A rank sees, from weak to strong: the environment of the notebook, `OF_MPI` if mpiexec starts it, `DEFAULT_ENV`, what
Horovod's rendezvous says about its place (see `helpers.cluster.rendezvous`), and the `env` that `connect` was given.
How many threads it has follows from the cores that its host grants.
"""

import os
import socket
from collections import Counter
from functools import cache

import psutil

# Horovod's limits in seconds: a dead rank is noticed, and a rank that never comes to a collective ends it for all.
DEFAULT_ENV = {
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "30",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "10",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60",
}

# Open MPI 4 and 5: run as root, with more ranks than cores, over shared memory (its TCP listens on every interface).
OF_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^tcp,openib,ofi,uct,usnic",
}

# Where Open MPI keeps its shared memory and its session: engines that are killed do not remove them.
FOLDERS_OF_MPI = [
    "OMPI_MCA_btl_vader_backing_directory",
    "OMPI_MCA_btl_sm_backing_directory",
    "PRTE_MCA_prte_tmpdir_base",
]


def of_engines(env, controller, folder):
    """The environment of engines that are started here, beside the notebook's own.

    Parameters
    ----------
    env : dict
        What `connect` was given.
    controller : str
        "gloo" or "mpi".
    folder : Path
        Goes when the engines go.

    Returns
    -------
    dict
        Name to value, str to str.
    """
    of_mpi = {}
    if controller == "mpi":
        of_mpi = {**OF_MPI, **dict.fromkeys(FOLDERS_OF_MPI, str(folder))}
    return {**of_mpi, **of_rank(env)}


def of_rank(env, slot=None):
    """The environment that a rank sets before `hvd.init()`.

    Parameters
    ----------
    env : dict or None
        What `connect` was given.
    slot : dict, optional
        The rank's place, from `start_rendezvous`.

    Returns
    -------
    dict
        Name to value, str to str.
    """
    chosen = {**DEFAULT_ENV, **(slot or {}), **(env or {})}
    return {name: str(value) for name, value in chosen.items()}


def enter(env):
    """Set the environment of this process.

    Returns
    -------
    dict
        What to give to `leave`: the values before, None for a variable that was not set.
    """
    if "HOROVOD_GLOO_RENDEZVOUS_ADDR" in env:
        env = {"HOROVOD_GLOO_IFACE": interface_to(env["HOROVOD_GLOO_RENDEZVOUS_ADDR"]), **env}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    return before


def leave(before):
    """Give the variables of `enter` the values that they had before."""
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def interface_to(address):
    """The name of the network interface through which this host reaches an IP address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        mine = probe.getsockname()[0]
    for name, addresses in psutil.net_if_addrs().items():
        if mine in [entry.address for entry in addresses]:
            return name
    raise OSError(f"no network interface of this host has the address {mine}")


def threads_of_ranks(engines):
    """How many threads a rank may have: engines that may use the same cores share them equally.

    Parameters
    ----------
    engines : list of EngineInfo
        Of each its host, cpus and cores are read.

    Returns
    -------
    int
        The same number for all ranks, at least 1.
    """
    places = [(engine.host, tuple(engine.cpus)) for engine in engines]
    sharing = Counter(places)
    shares = [engine.cores // sharing[place] for engine, place in zip(engines, places)]
    return max(1, min(shares))


@cache
def keep_autograph_from_horovod():
    """Tell TensorFlow of this process to leave Horovod's own Python as it is.

    AutoGraph rewrites all Python that a `tf.function` calls, so that an `if` may depend on a tensor. None of Horovod's
    does, and to rewrite it takes a rank 2.7 to 4.2 seconds of computing in its first step, instead of 0.2 to 0.4
    (2026-11-26, a virtual machine). `tf.function(autograph=False)` does the same for one function; for all of them
    TensorFlow has a list, without a public name.
    """
    from tensorflow.python.autograph.core import config

    config.CONVERSION_RULES = (config.DoNotConvert("horovod"), *config.CONVERSION_RULES)


def limit_threads(threads):
    """Give BLAS and TensorFlow of this process so many threads.

    Raises
    ------
    RuntimeError
        If TensorFlow already runs with another number.
    """
    import tensorflow as tf
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    except RuntimeError:
        running = tf.config.threading.get_intra_op_parallelism_threads()
        raise RuntimeError(
            f"TensorFlow already runs with {running or 'all'} threads in this process and a rank may have {threads}: "
            "restart the engines (ipcluster stop, ipcluster start) before connect()"
        ) from None
