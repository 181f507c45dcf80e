"""helpers.cluster.ranks with real engines, real Horovod and real deaths.

Most tests attach to one `ipcluster` of three engines: joining Horovod again is quicker than to start engines.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import ipyparallel as ipp
import joblib
import numpy as np
import psutil
import pytest
from clusters import Cluster
from ipyparallel.serialize import use_cloudpickle
from kernels import Kernel
from waiting import wait_for as wait_until

from helpers.cluster import RankFailure, connect, engines, environment, on_engine, report
from helpers.cluster.environment import OF_MPI
from helpers.cluster.processes import Family, kill

pytestmark = pytest.mark.ranks
use_cloudpickle()

MPI = pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
HVD = "import horovod.tensorflow as hvd, tensorflow as tf"
# what `%%px` would run for: rank 0 waits in a collective for the other rank, which sleeps
STUCK = f"%%px\n{HVD}\nimport time\nprint('in')\n_ = time.sleep(600) if hvd.rank() else hvd.allreduce(tf.ones(1))"
# the same with --local: the kernel is done at once, the ranks sleep
STUCK_LOCALLY = "%%px --local\nimport os, time\nprint('in')\nif 'IPP_PROFILE_DIR' in os.environ: time.sleep(600)"


def where():
    import horovod.tensorflow as hvd
    import tensorflow as tf

    total = float(hvd.allreduce(tf.constant(hvd.rank() + 1.0), op=hvd.Sum))
    return hvd.rank(), hvd.local_rank(), hvd.size(), total


def rewritten_by_autograph():
    """The functions of Horovod that TensorFlow would rewrite for a step with an allreduce and a tape."""
    import horovod.tensorflow as hvd
    from tensorflow.python.autograph.impl import conversion

    horovod = [hvd.allreduce, hvd.DistributedGradientTape]
    return [function.__name__ for function in horovod if not conversion.is_allowlisted(function)]


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


def fail(*anything):
    raise TypeError("this engine says no")


def wait_long(*anything):
    time.sleep(2)


def listening(processes):
    """(name of the process, address) of every TCP socket on which they wait for connections."""
    found = [(p.name(), c) for p in processes for c in p.net_connections("tcp")]
    return sorted((name, c.laddr.ip) for name, c in found if c.status == psutil.CONN_LISTEN)


def held():
    """What a failed start must give back: this process's sockets, its children and its rendezvous."""
    me = psutil.Process()
    links = [c for c in me.net_connections("tcp") if c.status in (psutil.CONN_LISTEN, psutil.CONN_ESTABLISHED)]
    return len(links), sorted(child.pid for child in me.children(recursive=True))


def settled():
    """held(), when it has not changed for a second: ZeroMQ closes what earlier tests left in a thread of its own."""

    def unchanged():
        before = held()
        time.sleep(1)
        return before if held() == before else None

    return wait_until(unchanged, 20)


@pytest.fixture(scope="module")
def ipcluster():
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pair(ipcluster):
    with connect(2) as ranks:
        yield ranks


# Two ranks


def test_autograph_leaves_horovod_as_it_is(pair):
    assert pair.run(rewritten_by_autograph) == [[], []]


def test_ranks_share_the_cores(pair):
    def threads():
        import tensorflow as tf
        from threadpoolctl import threadpool_info

        np.ones((2, 2)) @ np.ones((2, 2))
        blas = {pool["num_threads"] for pool in threadpool_info()}
        return tf.config.threading.get_intra_op_parallelism_threads(), blas

    expected = max(1, joblib.cpu_count() // 2)  # of the three engines two are touched
    assert pair.threads == expected
    assert pair.run(threads) == [(expected, {expected})] * 2


def test_cores_are_those_that_a_container_grants(monkeypatch):
    monkeypatch.setattr(joblib.externals.loky.backend.context, "_cpu_count_cgroup", lambda os_cpu_count: 1)
    light = SimpleNamespace(gloo_built=bool, mpi_built=bool, is_initialized=bool)
    monkeypatch.setitem(sys.modules, "horovod.tensorflow", light)
    assert on_engine.describe().cores == 1


def test_engines_that_have_cores_of_their_own_do_not_divide_them():
    def engine(host, cpus, cores):
        return SimpleNamespace(host=host, cpus=cpus, cores=cores)

    two_tasks_of_slurm = [engine("a", [0, 1, 2, 3], 4), engine("a", [4, 5, 6, 7], 4)]
    assert environment.threads_of_ranks(two_tasks_of_slurm) == 4
    assert environment.threads_of_ranks([engine("a", [*range(8)], 8)] * 2) == 4
    assert environment.threads_of_ranks([engine("a", [*range(8)], 2)] * 2) == 1, "a container grants two"
    assert environment.threads_of_ranks([engine("a", [], 8), engine("b", [], 4)]) == 4, "a Mac knows no numbers"
    assert environment.threads_of_ranks([engine("a", [0], 1)] * 3) == 1


def test_nothing_listens_beyond_loopback(pair):
    found = listening([psutil.Process(pid) for pid in [os.getpid(), *(e.pid for e in pair.engines)]])
    assert len(found) >= 3, "the rendezvous and two ranks"
    assert {address for _, address in found} == {"127.0.0.1"}


def test_exceptions_closures_and_arrays_travel(pair):
    factor = 3
    assert pair.run(lambda x: x * factor, 2) == [6, 6]
    assert [a.tolist() for a in pair.run(lambda a: a.__iadd__(1), np.zeros(2))] == [[1, 1]] * 2
    with pytest.raises(Exception, match="division by zero"):
        pair.run(lambda: 1 / 0)
    assert pair.run(where)[1][0] == 1


def test_results_that_take_long_to_unpack_arrive(pair):
    assert [len(found) for found in pair.run(lambda: [{"number": i} for i in range(200_000)])] == [200_000] * 2


def test_progress_shows_step_loss_and_speed(pair, capsys):
    def train(steps):
        for step in range(1, steps + 1):
            report(step, steps, loss=1 / step, pairs_per_s=1000)
            time.sleep(0.3)

    pair.run(train, 4, progress=True)
    shown = capsys.readouterr()
    assert "/4" in shown.out and "loss" in shown.out and "1,000 pairs/s" in shown.out
    assert shown.err == ""


def test_threads_of_a_started_tensorflow_are_not_ignored(pair):
    def ask_for_more():
        import tensorflow as tf

        from helpers.cluster import environment

        tf.ones(1)
        environment.limit_threads(7)

    with pytest.raises(Exception, match="already runs with . threads in this process and a rank may have 7"):
        pair.run(ask_for_more)


# What connect is asked for


def test_bad_arguments_get_one_sentence():
    cases = [
        ({"n": 0}, "n=0: a whole number of ranks is needed, at least 1 rank"),
        ({"n": 2.5}, "n=2.5: a whole number"),
        ({"controller": "nccl"}, "controller='nccl': choose"),
        ({"address": "192.0.2.77"}, "address='192.0.2.77': give one IPv4 address of this machine"),
        ({"address": "0.0.0.0"}, "every interface, and the rendezvous has no password"),
        ({"address": 7}, "address=7: give one"),
    ]
    for arguments, says in cases:
        with pytest.raises(ValueError, match=says) as error:
            connect(**arguments)
        assert "\n" not in str(error.value)


def test_ranks_for_which_there_is_no_memory_are_not_started(monkeypatch):
    monkeypatch.setattr(engines, "available", lambda: 1e9)
    monkeypatch.setattr(engines, "_start", fail)
    with pytest.raises(ValueError, match="n=100: 100 ranks need at least 30.0 GB of memory, and 1.0 GB are free"):
        connect(100, cluster=False)


# What fails leaves nothing


@pytest.mark.parametrize(("broken", "error"), [(fail, ipp.error.RemoteError), (wait_long, KeyboardInterrupt)])
def test_a_connect_that_fails_or_is_interrupted_leaves_nothing_listening(ipcluster, monkeypatch, broken, error):
    before = settled()
    monkeypatch.setattr(on_engine, "initialise", broken)

    def interrupt():
        wait_until(lambda: listening([psutil.Process()]))
        os.kill(os.getpid(), signal.SIGINT)

    if error is KeyboardInterrupt:
        threading.Thread(target=interrupt).start()
    with pytest.raises(error):
        connect(2)
    wait_until(lambda: held() == before)


def test_closing_goes_on_when_a_part_of_it_fails(ipcluster, monkeypatch):
    ranks = connect(2)
    monkeypatch.setattr(type(ranks.view), "apply_async", fail)
    with pytest.raises(TypeError, match="says no"):
        ranks.close()
    assert listening([psutil.Process()]) == []
    with pytest.raises(RankFailure, match="the ranks are closed: call connect"):
        ranks.run(where)


# Clusters that somebody else started


@pytest.mark.parametrize("kind", [None, "client", "cluster", "profile", "file"])
def test_a_cluster_is_found_and_can_be_named_in_four_ways_and_is_never_stopped(ipcluster, kind, capsys):
    with ipp.Client(str(ipcluster.file)) as client:
        running = ipp.Cluster.from_file(str(ipcluster.file.with_name("cluster-.json")))
        named = {"client": client, "cluster": running, "profile": "default", "file": ipcluster.file}
        with connect(2, cluster=named.get(kind)) as ranks:
            assert [engine.pid for engine in ranks.engines] == ipcluster.pids[:2]
            assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        assert "engines of the running ipcluster" in capsys.readouterr().out
        assert client[:].apply_sync(os.getpid) == ipcluster.pids, "neither the client nor the engines were closed"


def test_engines_that_are_not_needed_are_not_touched(ipcluster):
    with ipp.Client(str(ipcluster.file)) as client, connect(2, cluster=ipcluster.file):
        imported = client[:].apply_sync(lambda: "tensorflow" in __import__("sys").modules)
    assert imported == [True, True, False]


def test_the_names_of_others_survive_and_the_environment_is_theirs_again(ipcluster):
    with ipp.Client(str(ipcluster.file)) as client:
        theirs = client[:2]
        theirs["data"] = [1, 2, 3]
        before = theirs.apply_sync(lambda: dict(os.environ))
        with connect(2, cluster=ipcluster.file, env={"MINE": 1, "HOROVOD_CYCLE_TIME": 2}) as ranks:
            assert ranks.view["data"] == [[1, 2, 3]] * 2
            assert ranks.run(lambda: os.environ["MINE"] + os.environ["HOROVOD_CYCLE_TIME"]) == ["12"] * 2
        assert theirs["data"] == [[1, 2, 3]] * 2
        assert theirs.apply_sync(lambda: dict(os.environ)) == before
        ranks = connect(2, cluster=ipcluster.file, env={"MINE": 1})
        ranks._undo.pop_all()  # a kernel that was killed gives nothing back
        with connect(2, cluster=ipcluster.file, env={"OTHER": 2}):
            pass
        assert theirs.apply_sync(lambda: dict(os.environ)) == before


def test_ranks_that_do_not_answer_are_named(ipcluster):
    def late():
        import horovod.tensorflow as hvd

        time.sleep(3 * hvd.rank())

    ranks = connect(2, cluster=ipcluster.file)
    call = ranks.submit(lambda: ranks.view.apply_async(late))
    call.split()[0].get(200)  # rank 0 has answered, however busy the machine is
    with pytest.raises(RankFailure, match=r"^rank 1 \(engine 1\) did not answer within 1 s. Call connect"):
        ranks.wait(call, timeout=1)
    with ipp.Client(str(ipcluster.file)) as client:
        client[:].apply_sync(os.getpid)


def test_a_controller_that_does_not_answer_is_one_sentence(ipcluster, monkeypatch):
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
    started = psutil.Process(ipcluster.process.pid).children(recursive=True)
    controller = next(process for process in started if "ipyparallel.controller" in process.cmdline())
    with ipp.Client(str(ipcluster.file)) as client:
        controller.suspend()
        try:
            with pytest.raises(ValueError, match="the cluster's controller does not answer: it has ended, or"):
                connect(1, cluster=client)
        finally:
            controller.resume()
        client[:].apply_sync(os.getpid)


def test_a_cluster_that_cannot_be_used_is_one_sentence(ipcluster, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 2)
    known = json.loads(ipcluster.file.read_text())
    ports = {key: 1 for key, value in known.items() if isinstance(value, int)}  # nothing listens on port 1
    stale, empty = tmp_path / "stale.json", tmp_path / "empty.json"
    stale.write_text(json.dumps({**known, **ports}))
    empty.write_text("")
    before = settled()
    for cluster, n, sentence in [
        ("nobody", 1, "there is no IPython profile 'nobody'"),
        (tmp_path / "none.json", 1, "no cluster runs there: there is no connection file .*none.json"),
        (empty, 1, "empty.json leads to no cluster: .* it is empty, half written or"),
        (stale, 1, "stale.json leads to no cluster: it was left behind by one that is gone or is out of reach, or"),
        (ipcluster.file.with_name("cluster-.json"), 1, "or no connection file of an ipcontroller"),
        (ipcluster.file, 4, r"the cluster has 3 engine\(s\), 4 are needed"),
    ]:
        with pytest.raises(ValueError, match=sentence) as error:
            connect(n, cluster=cluster)
        assert "\n" not in str(error.value)
    monkeypatch.setattr(on_engine, "describe", fail)
    with pytest.raises(ValueError, match="its engines are of no use: TypeError: this engine says no"):
        connect(1, cluster=ipcluster.file)
    wait_until(lambda: held() == before)


def test_a_busy_and_a_silent_engine_are_named_and_the_others_are_free(ipcluster, tmp_path, monkeypatch, capsys):
    def work(done):
        while not done.exists():
            time.sleep(0.05)

    with ipp.Client(str(ipcluster.file)) as client:
        working = client[1].apply_async(work, tmp_path / "done")
        with pytest.raises(ValueError, match="engine 1 of the cluster is busy"):
            connect(2, cluster=ipcluster.file)
        monkeypatch.setattr(engines, "start", fail)
        with pytest.raises(TypeError, match="says no"):
            connect(2)
        assert "the running ipcluster is not used: engine 1 of the cluster is busy" in capsys.readouterr().out
        (tmp_path / "done").touch()
        working.get(200)
        client[1].apply_sync(os.getpid)  # it has answered what was asked meanwhile, too
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
    os.kill(ipcluster.pids[1], signal.SIGSTOP)
    try:
        with pytest.raises(ValueError, match="engine 1 of the cluster does not answer: it has died, or"):
            connect(2, cluster=ipcluster.file)
    finally:
        os.kill(ipcluster.pids[1], signal.SIGCONT)
    with connect(2, cluster=ipcluster.file) as ranks:
        assert ranks.size == 2


# Engines of our own


def test_engines_that_end_at_once_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(engines, "ENGINE", "helpers.no_such_module")
    before = settled()
    with pytest.raises(RankFailure, match="1 engines did not start: one process ended at once"):
        engines.start(1, "gloo", {}, 600)
    wait_until(lambda: held() == before)


@MPI
def test_a_launcher_that_ends_at_once_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(engines, "_mpiexec", lambda: shutil.which("false"))
    with pytest.raises(RankFailure, match="one process ended at once"):
        engines.start(1, "mpi", {}, 600)


SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def with_id(pid):
    """A sleeping process that has this id."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        process = subprocess.Popen(SLEEP)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    pytest.skip("no process gets the id again: this system does not grant it")


def waits_for_a_line(process):
    """Whether it has read everything that was written to its standard input, and sleeps."""
    unread = fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))
    return unread == bytes(4) and psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING


def test_a_killed_process_that_nobody_collects_is_not_waited_for():
    program = f"import subprocess, time; print(subprocess.Popen({SLEEP}).pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as careless:
        try:
            grandchild = psutil.Process(int(careless.stdout.readline()))
            begin = time.monotonic()
            kill([grandchild], timeout=50)
            assert time.monotonic() - begin < 25 and grandchild.status() == psutil.STATUS_ZOMBIE
        finally:
            careless.kill()


def test_who_has_the_id_of_one_of_ours_by_now_is_not_killed(tmp_path):
    with Family("test", tmp_path) as family:
        ours = subprocess.Popen(SLEEP)
        family.adopt(ours.pid)
        wait_until(lambda: waits_for_a_line(family._watcher))
        ours.kill()
        ours.wait()
        stranger = with_id(ours.pid)
    assert stranger.poll() is None and not family.folder.exists()
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("controller", ["gloo", pytest.param("mpi", marks=MPI)])
def test_a_killed_kernel_takes_its_engines_along(controller):
    program = f"""if True:
        import psutil, time
        from helpers.cluster import engines
        group = engines.start(1, {controller!r}, {{}}, 120)
        print(*[p.pid for p in psutil.Process().children(recursive=True)], flush=True)
        time.sleep(600)
    """
    kernel = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    family = [psutil.Process(int(pid)) for pid in kernel.stdout.readline().split()]
    assert len(family) >= 3, "watcher, controller, engine"
    kernel.kill()
    kernel.communicate()
    psutil.wait_procs(family, timeout=200)
    assert not any(process.is_running() for process in family)


# Dead ranks; lesson 20 has one that dies in a collective over Gloo


def test_on_a_system_that_does_not_tell_of_logs_a_failure_has_one(monkeypatch):
    """A Mac has no /proc: there the log is known from ipyparallel's launcher."""
    probe = engines.probe
    monkeypatch.setattr(engines, "probe", lambda *given: [replace(engine, log="") for engine in probe(*given)])
    with connect(1, cluster=False) as ranks:
        assert ranks.engines[0].log == ""
        ranks.run(lambda: os.write(2, b"one\ntwo\n"))
        assert ranks.log(0, lines=2) == "one\ntwo"
        with pytest.raises(RankFailure, match="about to die"):
            ranks.run(die, 0, False)


# Ranks that died between two calls, all of which send by Ranks.submit

CALLS = "ranks.run(print)", "%%px\n1", "%%px --local\n1"
KILL = """
import psutil
from helpers.cluster import connect

def kill(ranks):
    process = psutil.Process(ranks.engines[1].pid)
    process.kill()
    psutil.wait_procs([process], timeout=10)
"""


def fails_after_a_death(kernel, call, arguments):
    """Connect, kill rank 1 and look at what a call says, and the next one."""
    kernel.run(KILL)
    assert "2 ranks ready" in kernel.run(f"ranks = connect(2, {arguments}, grace=1)"), call
    kernel.run("kill(ranks)")
    shown = kernel.run(call)
    assert "RankFailure" in shown and " died" in shown, call
    assert "call connect() again" in kernel.run("%px 1")


@pytest.mark.parametrize(("controller", "calls"), [("gloo", CALLS), pytest.param("mpi", CALLS[-1:], marks=MPI)])
def test_a_rank_of_ours_that_died_between_two_calls_is_a_failure(controller, calls):
    with Kernel() as kernel:
        for call in calls:
            fails_after_a_death(kernel, call, f"controller={controller!r}, cluster=False")


# Cells


def test_px_cells_and_an_interrupt(ipcluster):
    def interrupt():
        threading.Timer(2, kernel.manager.interrupt_kernel).start()

    with Kernel() as kernel:
        assert "2 ranks ready" in kernel.run("from helpers.cluster import connect; ranks = connect(2)")
        shown = kernel.run(f"%%px\n{HVD}\nprint('rank', hvd.rank())\nprint('old', end=' ')")
        assert shown.index("rank 0") < shown.index("rank 1")
        assert "NameError" in kernel.run("%px undefined_name")
        for stuck in (STUCK, STUCK_LOCALLY):
            assert "2 ranks ready" in kernel.run("ranks = connect(2, cluster=False)")
            pids = [int(pid) for pid in kernel.run("print(*[e.pid for e in ranks.engines])").split()]
            shown = kernel.run(stuck, then=interrupt)
            assert "KeyboardInterrupt" in shown and "interrupted: these ranks are closed" in shown
            wait_until(lambda pids=pids: not any(map(psutil.pid_exists, pids)))
        assert "2 ranks ready" in kernel.run("ranks = connect(2)")


# MPI


@MPI
@pytest.mark.skipif(os.getuid() or not shutil.which("setpriv"), reason="only root can become another user")
def test_mpiexec_starts_more_ranks_than_cores_for_another_user(tmp_path):
    # who keeps root's right to read files: the interpreter may lie in /root
    become = ["setpriv", "--reuid=65534", "--clear-groups", "--securebits=+no_setuid_fixup"]
    become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    n = psutil.cpu_count() + 1
    program = "import os; from mpi4py import MPI; print(os.getuid(), MPI.COMM_WORLD.allreduce(1))"
    command = [*become, shutil.which("mpiexec"), "-n", str(n), sys.executable, "-c", program]
    env = {**os.environ, **OF_MPI, "HOME": str(tmp_path), "TMPDIR": "/tmp"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"65534 {n}"] * n


@MPI
def test_mpi_engines_of_our_own_more_than_cores_and_what_they_listen_on():
    n = joblib.cpu_count() + 1
    with connect(n, controller="mpi", grace=5) as ranks:
        assert ranks.controller == "mpi"
        folder = ranks.run(lambda: dict(os.environ))[0]["OMPI_MCA_btl_sm_backing_directory"]
        assert os.path.isdir(folder)
        assert [answer[:3] for answer in ranks.run(where)] == [(rank, rank, n) for rank in range(n)]
        found = listening([psutil.Process(e.pid) for e in ranks.engines])
        assert {address for _, address in found} == {"127.0.0.1"}, "the ranks, which exchange by shared memory"
        launcher = psutil.Process(ranks.engines[0].pid).parent()
        # said in docs/clusters.md: mpiexec itself waits for daemons of other hosts, and no option changes that
        assert {address for _, address in listening([launcher])} <= {"127.0.0.1", "0.0.0.0", "::"}
        with pytest.raises(RankFailure, match="died"):
            ranks.run(die, 1, True)
    wait_until(lambda: not any(psutil.pid_exists(engine.pid) for engine in ranks.engines))
    assert not os.path.exists(folder)


@MPI
def test_attached_mpi_engines_keep_their_horovod_and_a_death_among_them_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # beside the other ipcluster
    with Cluster(2, "--engines=mpi") as cluster, Kernel() as kernel:
        with connect(2) as ranks:
            assert ranks.controller == "mpi"
            assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        for arguments, sentence in [
            ({"n": 1}, "already run Horovod with 2 ranks, and MPI can be initialised only once"),
            ({"env": {"HOROVOD_CYCLE_TIME": 7}}, "run Horovod already, which read HOROVOD_CYCLE_TIME when it started"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                connect(**arguments, cluster=cluster.file)
        assert all(psutil.pid_exists(pid) for pid in cluster.pids)
        fails_after_a_death(kernel, CALLS[-1], f"cluster={str(cluster.file)!r}")


# The end of the ipcluster


def test_a_rank_of_attached_engines_that_died_between_two_calls_is_a_failure(ipcluster):
    with Kernel() as kernel:
        fails_after_a_death(kernel, "%%px\n1", f"cluster={str(ipcluster.file)!r}")
