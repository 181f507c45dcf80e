"""What `helpers.cluster.ranks` runs on the engines."""

import functools
import os
import socket
import sys

import joblib
import psutil


def describe():
    """Who this engine is and what its Horovod can do."""
    _native_output_to_log()
    import horovod.tensorflow as hvd

    rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
    return {
        "pid": os.getpid(),
        "cores": joblib.cpu_count(),  # heeds affinity and a container's quota, and runs on a Mac
        "host": socket.gethostname(),
        "address": _own_address(),
        "log": _log_file(),
        "mpi_rank": None if rank is None else int(rank),
        "gloo": bool(hvd.gloo_built()),
        "mpi": bool(hvd.mpi_built()),
    }


def initialise(size, threads, env):
    """Set threads and environment, call hvd.init(); returns (rank, size)."""
    os.environ.update(env)
    limit_threads(threads)
    _trace_horovod_as_it_is()
    import horovod.tensorflow as hvd

    if "HOROVOD_GLOO_RENDEZVOUS_ADDR" in env:
        os.environ["HOROVOD_GLOO_IFACE"] = _interface_to(env["HOROVOD_GLOO_RENDEZVOUS_ADDR"])
        if hvd.is_initialized():
            hvd.shutdown()
        hvd.init()
    elif not hvd.is_initialized():
        hvd.init(comm=list(range(size)))
    elif hvd.size() != size:
        raise RuntimeError(
            f"these MPI engines already run Horovod with {hvd.size()} ranks, and MPI can be initialised only once "
            f"in a process: call connect({hvd.size()}) or restart the ipcluster"
        )
    return hvd.rank(), hvd.size()


def shutdown():
    """End Horovod, so that this engine can join another rendezvous."""
    import horovod.tensorflow as hvd

    hvd.shutdown()


def limit_threads(threads):
    """Give BLAS and TensorFlow so many threads. Raises RuntimeError if TensorFlow already runs with another number."""
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


@functools.cache
def _trace_horovod_as_it_is():
    """Without it AutoGraph rewrites Horovod's functions, which need none of it: a second in each rank."""
    from tensorflow.python.autograph.core import config

    config.CONVERSION_RULES = (config.DoNotConvert("horovod"), *config.CONVERSION_RULES)


def _own_address():
    """Where this host's own name leads, from its table of names; "" if nowhere."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def _interface_to(address):
    """The name of the network interface through which this host reaches an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        mine = probe.getsockname()[0]
    return next(name for name, ips in psutil.net_if_addrs().items() if mine in [ip.address for ip in ips])


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
