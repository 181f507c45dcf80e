"""helpers.cluster.ranks with real engines, real Horovod and real deaths."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import numpy as np
import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from helpers.cluster.engines import MPI_ENV
from helpers.cluster.ranks import RankFailure, connect, report

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # engines cannot import this file

MPI = pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
CONNECT = "from helpers.cluster import connect; ranks = connect(2)"
HVD = "import horovod.tensorflow as hvd, tensorflow as tf"
# what `%%px` would run for: rank 0 waits in a collective for the other rank, which sleeps
STUCK = f"%%px\n{HVD}\nimport time\nprint('in')\n_ = time.sleep(600) if hvd.rank() else hvd.allreduce(tf.ones(1))"


def where(scale=1):
    import horovod.tensorflow as hvd
    import tensorflow as tf

    total = float(hvd.allreduce(tf.constant(float(hvd.rank() + 1) * scale), op=hvd.Sum))
    return hvd.rank(), hvd.local_rank(), hvd.size(), total


def die(rank, inside):
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.allreduce(tf.ones(1), name="before")
    if hvd.rank() == rank:
        print("about to die", file=sys.__stderr__, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if inside:
        hvd.allreduce(tf.ones(1), name="after")
    return hvd.rank()


def train(steps):
    for step in range(1, steps + 1):
        report(step, steps, loss=1 / step, pairs_per_s=1000)
        time.sleep(0.3)


@pytest.fixture(scope="module")
def ranks():
    with connect(2) as ranks:
        yield ranks


def test_every_rank_answers_in_rank_order(ranks):
    assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
    assert ranks.run(where, scale=2)[0][3] == 6.0
    ranks.view.execute(f"{HVD}; r = hvd.rank()").get(timeout=60)
    assert ranks.view["r"] == [0, 1]


def test_ranks_share_the_cores(ranks):
    def threads():
        import tensorflow as tf
        from threadpoolctl import threadpool_info

        np.ones((2, 2)) @ np.ones((2, 2))
        blas = {pool["num_threads"] for pool in threadpool_info()}
        return tf.config.threading.get_intra_op_parallelism_threads(), blas

    expected = max(1, len(psutil.Process().cpu_affinity()) // 2)
    assert ranks.threads == expected
    assert ranks.run(threads) == [(expected, {expected})] * 2


def test_nothing_listens_beyond_loopback(ranks):
    ours = [psutil.Process(pid) for pid in [os.getpid(), *(e["pid"] for e in ranks.engines)]]
    listening = [c for p in ours for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert listening, "the rendezvous server, at least, listens"
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}
    assert [ranks._rendezvous._server.server_address[0]] == ["127.0.0.1"]


def test_exceptions_and_closures_travel(ranks):
    factor = 3
    assert ranks.run(lambda x: x * factor, 2) == [6, 6]
    with pytest.raises(Exception, match="division by zero"):
        ranks.run(lambda: 1 / 0)
    assert ranks.run(where)[1][0] == 1


def test_progress_shows_step_loss_and_speed(ranks, capsys):
    ranks.run(train, 5, progress=True)
    shown = capsys.readouterr()
    assert "/5" in shown.out and "loss" in shown.out and "1,000 pairs/s" in shown.out
    assert shown.err == ""


def test_bad_arguments():
    with pytest.raises(ValueError, match="n=0: at least 1 rank"):
        connect(0)
    with pytest.raises(ValueError, match="nccl"):
        connect(2, controller="nccl")


def test_threads_of_a_started_tensorflow_are_not_ignored(ranks):
    def ask_for_more():
        import tensorflow as tf

        from helpers.cluster import on_engine

        tf.ones(1)
        on_engine.limit_threads(7)

    with pytest.raises(Exception, match="already runs with . threads in this process and a rank may have 7"):
        ranks.run(ask_for_more)


def test_a_second_connect_replaces_the_first(ranks):
    with connect(3) as three:
        assert [r[:3] for r in three.run(where)] == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
    assert not any(psutil.pid_exists(engine["pid"]) for engine in ranks.engines)


def test_an_address_is_listened_on_when_asked_for():
    with connect(2, address="127.0.0.2") as ranks:
        assert ranks._rendezvous._server.server_address[0] == "127.0.0.2"
        assert len(ranks.run(where)) == 2


@pytest.mark.parametrize("inside", [True, False], ids=["in a collective", "outside"])
def test_a_dead_rank_is_named_in_time_and_connect_works_again(inside):
    ranks = connect(2)
    start = time.monotonic()
    with pytest.raises(RankFailure, match=r"^rank 1 \(engine 1\) died, killed by SIGKILL") as failure:
        ranks.run(die, 1, inside)
    assert time.monotonic() - start < 60
    assert "about to die" in str(failure.value)
    if inside:
        with connect(2) as again:
            assert len(again.run(where)) == 2
    assert not any(psutil.pid_exists(engine["pid"]) for engine in ranks.engines)


@MPI
def test_mpi_engines_of_our_own():
    with connect(2, controller="mpi") as ranks:
        assert ranks.controller == "mpi"
        assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        listening = [c for e in ranks.engines for c in psutil.Process(e["pid"]).net_connections("inet")]
        assert {c.laddr.ip for c in listening if c.status == psutil.CONN_LISTEN} <= {"127.0.0.1"}
        with pytest.raises(RankFailure, match="died"):
            ranks.run(die, 1, True)
    with connect(2, controller="mpi") as again:
        assert len(again.run(where)) == 2


class Cluster:
    """A real `ipcluster start` under the test's profile."""

    def __init__(self, n, *options):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ipyparallel.cluster", "start", "-n", str(n), *options],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **MPI_ENV},
        )

    def __enter__(self):
        import ipyparallel as ipp

        deadline = time.monotonic() + 60
        file = os.path.join(os.environ["IPYTHONDIR"], "profile_default", "security", "ipcontroller-client.json")
        while not os.path.exists(file):
            assert time.monotonic() < deadline and self.process.poll() is None, "ipcluster did not start"
            time.sleep(0.2)
        self.client = ipp.Client(file, timeout=20)
        self.client.wait_for_engines(timeout=60, n=2, interactive=False)
        self.pids = self.client[:].apply_sync(os.getpid)
        return self

    def __exit__(self, *exc):
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def test_attached_engines_are_used_again_and_never_stopped(capsys):
    with Cluster(2) as cluster:
        for _ in range(2):
            with connect(2) as ranks:
                assert sorted(e["pid"] for e in ranks.engines) == sorted(cluster.pids)
                assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        assert "engines of the running ipcluster" in capsys.readouterr().out
        assert all(psutil.pid_exists(pid) for pid in cluster.pids)
        with connect(3) as ranks:
            assert "has 2 engine(s), 3 are needed" in capsys.readouterr().out
            assert not {e["pid"] for e in ranks.engines} & set(cluster.pids)
        ranks = connect(2)
        with pytest.raises(RankFailure, match="rank 0"):
            ranks.run(die, 0, False)
        with connect(2) as ranks:
            assert len(ranks.run(where)) == 2
    assert not os.path.exists(os.path.join(os.environ["IPYTHONDIR"], "profile_default/security/cluster-.json"))


@MPI
def test_attached_mpi_engines_keep_their_horovod(capsys):
    with Cluster(2, "--engines=mpi") as cluster:
        for _ in range(2):
            with connect(2) as ranks:
                assert ranks.controller == "mpi"
                assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        with pytest.raises(Exception, match="already run Horovod with 2 ranks, and MPI can be initialised only once"):
            connect(1)
        assert all(psutil.pid_exists(pid) for pid in cluster.pids)


def test_a_connection_file_left_behind_does_not_mislead():
    security = os.path.join(os.environ["IPYTHONDIR"], "profile_default", "security")
    with Cluster(2):
        shutil.copy(os.path.join(security, "ipcontroller-client.json"), os.path.join(security, "kept"))
    os.rename(os.path.join(security, "kept"), os.path.join(security, "ipcontroller-client.json"))
    with connect(1) as ranks:
        assert ranks.run(where) == [(0, 0, 1, 1.0)]
    os.remove(os.path.join(security, "ipcontroller-client.json"))


class Kernel:
    """A notebook kernel, as a reader has it."""

    def __enter__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3")
        return self

    def __exit__(self, *exc):
        self.client.stop_channels()
        self.manager.shutdown_kernel()

    def run(self, code, until=None):
        """Run a cell; returns what it printed and raised. With `until`, return as soon as that is printed."""
        shown, request = "", self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            shown += content.get("text", "") + "\n".join(content.get("traceback", []))
            if content.get("execution_state") == "idle" or (until and until in shown):
                return shown


def test_px_cells_interrupt_and_kernel_death():
    with Kernel() as kernel:
        assert "2 ranks ready" in kernel.run(CONNECT)
        shown = kernel.run(f"%%px\n{HVD}\nprint('rank', hvd.rank())\nprint('old', end=' ')")
        assert shown.index("rank 0") < shown.index("rank 1")
        assert "NameError" in kernel.run("%px undefined_name")

        threading.Timer(8, kernel.manager.interrupt_kernel).start()
        assert "KeyboardInterrupt" in kernel.run(STUCK)
        assert "2 ranks ready" in kernel.run(CONNECT)
        allreduce = "print(hvd.allreduce(tf.constant(1.0 + hvd.rank()), op=hvd.Sum).numpy())"
        assert "3.0" in kernel.run(f"%%px\n{HVD}\n{allreduce}")

        shown = kernel.run("%%px\nimport os, signal\nif hvd.rank() == 1: os.kill(os.getpid(), signal.SIGKILL)")
        assert "RankFailure" in shown and "rank 1 (engine 1) died" in shown
        assert "call connect() again" in kernel.run("%px 1")

        kernel.run(CONNECT)
        pids = kernel.run("print(*[e['pid'] for e in ranks.engines], ranks._group.cluster.controller.pid)").split()
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while any(psutil.pid_exists(int(pid)) for pid in pids):
            assert time.monotonic() < deadline, "engines outlived their killed kernel"
            time.sleep(0.2)
