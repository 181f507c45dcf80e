"""helpers.cluster.ranks with real engines, real Horovod and real deaths.

Most tests attach to one `ipcluster` of two engines: joining Horovod again is quicker than to start engines.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import ipyparallel as ipp
import joblib
import numpy as np
import psutil
import pytest
from clusters import Cluster
from ipyparallel.serialize import use_cloudpickle
from jupyter_client.manager import start_new_kernel
from waiting import wait_for

from helpers.cluster import RankFailure, connect, engines, forks, on_engine, report
from helpers.cluster.engines import MPI_ENV
from helpers.cluster.reaper import kill, start_child

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # engines cannot import this file
use_cloudpickle()

MPI = pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for a certain process id")
HVD = "import horovod.tensorflow as hvd, tensorflow as tf"
wait_until = partial(wait_for, seconds=20)
# what `%%px` would run for: rank 0 waits in a collective for the other rank, which sleeps
STUCK = f"%%px\n{HVD}\nimport time\nprint('in')\n_ = time.sleep(600) if hvd.rank() else hvd.allreduce(tf.ones(1))"
SOON = {"HOROVOD_GLOO_TIMEOUT_SECONDS": 5}


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
    for _ in range(20):
        before = held()
        time.sleep(1)
        if held() == before:
            return before
    raise AssertionError("sockets and children still come and go")


@pytest.fixture(scope="module")
def ipcluster():
    with Cluster(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ranks(ipcluster):
    with connect(2) as ranks:
        yield ranks


# Two ranks


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

    expected = max(1, joblib.cpu_count() // 2)
    assert ranks.threads == expected
    assert ranks.run(threads) == [(expected, {expected})] * 2


def test_cores_are_those_that_a_container_grants(monkeypatch):
    monkeypatch.setattr(joblib.externals.loky.backend.context, "_cpu_count_cgroup", lambda os_cpu_count: 1)
    light = SimpleNamespace(gloo_built=lambda: True, mpi_built=lambda: True)
    monkeypatch.setitem(sys.modules, "horovod.tensorflow", light)
    assert on_engine.describe()["cores"] == 1


def test_nothing_listens_beyond_loopback(ranks):
    found = listening([psutil.Process(pid) for pid in [os.getpid(), *(e["pid"] for e in ranks.engines)]])
    assert len(found) >= 3, "the rendezvous and two ranks"
    assert {address for _, address in found} == {"127.0.0.1"}


def test_exceptions_closures_and_arrays_travel(ranks):
    factor = 3
    assert ranks.run(lambda x: x * factor, 2) == [6, 6]
    assert [a.tolist() for a in ranks.run(lambda a: a.__iadd__(1), np.zeros(2))] == [[1, 1]] * 2
    with pytest.raises(Exception, match="division by zero"):
        ranks.run(lambda: 1 / 0)
    assert ranks.run(where)[1][0] == 1


def test_results_that_take_long_to_unpack_arrive(ranks):
    assert [len(found) for found in ranks.run(lambda: [{"number": i} for i in range(200_000)])] == [200_000] * 2


def test_progress_shows_step_loss_and_speed(ranks, capsys):
    def train(steps):
        for step in range(1, steps + 1):
            report(step, steps, loss=1 / step, pairs_per_s=1000)
            time.sleep(0.3)

    ranks.run(train, 4, progress=True)
    shown = capsys.readouterr()
    assert "/4" in shown.out and "loss" in shown.out and "1,000 pairs/s" in shown.out
    assert shown.err == ""


def test_threads_of_a_started_tensorflow_are_not_ignored(ranks):
    def ask_for_more():
        import tensorflow as tf

        from helpers.cluster import on_engine

        tf.ones(1)
        on_engine.limit_threads(7)

    with pytest.raises(Exception, match="already runs with . threads in this process and a rank may have 7"):
        ranks.run(ask_for_more)


# What connect is asked for


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n": 0}, "n=0: a whole number of ranks is needed, at least 1 rank"),
        ({"n": "two"}, "n='two': a whole number"),
        ({"n": 2.5}, "n=2.5: a whole number"),
        ({"controller": "nccl"}, "controller='nccl': choose"),
        ({"address": "192.0.2.77"}, "address='192.0.2.77': give one IPv4 address of this machine"),
        ({"address": "0.0.0.0"}, "every interface, and the rendezvous has no password"),
        ({"address": 7}, "address=7: give one"),
    ],
    ids=str,
)
def test_bad_arguments_get_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=says) as error:
        connect(**arguments)
    assert "\n" not in str(error.value)


def test_ranks_for_which_there_is_no_memory_are_not_started(monkeypatch):
    monkeypatch.setattr(engines, "available", lambda: 1e9)
    monkeypatch.setattr(engines, "_launch", fail)
    with pytest.raises(ValueError, match="n=100: 100 ranks need at least 30.0 GB of memory, and 1.0 GB are free"):
        connect(100, attach=False)


def test_an_address_is_listened_on_when_asked_for(ipcluster):
    with connect(2, address="127.0.0.2") as ranks:
        assert ("127.0.0.2",) in {entry[1:] for entry in listening([psutil.Process()])}
        assert len(ranks.run(where)) == 2
    assert listening([psutil.Process()]) == []


def test_attached_engines_are_used_again_and_never_stopped(ipcluster, capsys):
    for _ in range(2):
        with connect(2) as ranks:
            assert sorted(e["pid"] for e in ranks.engines) == sorted(ipcluster.pids)
            assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
    assert "engines of the running ipcluster" in capsys.readouterr().out
    assert all(psutil.pid_exists(pid) for pid in ipcluster.pids)


# What fails leaves nothing


def test_a_connect_that_fails_leaves_nothing_listening(ipcluster, monkeypatch):
    before = settled()
    monkeypatch.setattr(on_engine, "initialise", fail)
    with pytest.raises(Exception, match="this engine says no"):
        connect(2)
    wait_until(lambda: held() == before)


def test_ctrl_c_during_connect_leaves_nothing_listening(ipcluster, monkeypatch):
    before = settled()
    monkeypatch.setattr(on_engine, "initialise", wait_long)

    def interrupt():
        wait_until(lambda: listening([psutil.Process()]))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        connect(2)
    wait_until(lambda: held() == before)


def test_closing_goes_on_when_a_part_of_it_fails(ipcluster, monkeypatch):
    ranks = connect(2)
    monkeypatch.setattr(type(ranks.view), "apply_async", fail)
    with pytest.raises(TypeError, match="says no"):
        ranks.close()
    assert listening([psutil.Process()]) == []


def test_engines_that_cannot_be_ranks_are_let_go(ipcluster, monkeypatch, capsys):
    before = settled()
    monkeypatch.setattr(on_engine, "describe", fail)
    assert engines.attach(2, None) is None
    assert "TypeError: this engine says no" in capsys.readouterr().out
    wait_until(lambda: held() == before)


def test_busy_engines_are_not_waited_for(ipcluster, monkeypatch, capsys, tmp_path):
    def work(done):
        while not done.exists():
            time.sleep(0.05)

    before = settled()
    with ipp.Client(str(ipcluster.file)) as client:
        working = client[0].apply_async(work, tmp_path / "done")
        monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
        assert engines.attach(1, None) is None
        (tmp_path / "done").touch()
        working.get(20)
    assert "it does not answer" in capsys.readouterr().out
    wait_until(lambda: held() == before)


def test_a_start_that_fails_leaves_no_process_and_no_connection(monkeypatch):
    forks.forker()  # it stays for the next ones
    before = settled()

    def too_late(*anything):
        raise TimeoutError("no engine came")

    monkeypatch.setattr(engines, "_wait_for_engines", too_late)
    with pytest.raises(RankFailure, match="1 engines did not start: no engine came"):
        engines.start(1, "gloo", {}, 20)
    wait_until(lambda: held() == before)


def test_a_client_that_was_told_of_one_engine_only_is_followed_by_another(monkeypatch):
    """An engine that registers while a client connects is neither in the answer nor in the messages that follow."""
    moments, update = [], ipp.Client._update_engines

    def update_with_one_at_first(client, found):
        moments.extend([time.monotonic()] * len(found))
        early = found and time.monotonic() < moments[0] + 0.5
        update(client, dict(islice(found.items(), max(0, 1 - len(client._engines)))) if early else found)

    monkeypatch.setattr(ipp.Client, "_update_engines", update_with_one_at_first)
    with connect(2, attach=False, timeout=30) as ranks:
        assert len(ranks.view.client.ids) == 2


PORTS = ["registration", "control", "mux", "task", "iopub", "ping", "pong"]  # in the order in which they are chosen


@pytest.mark.parametrize("place", range(len(PORTS)), ids=PORTS)
def test_a_controller_whose_port_was_taken_is_followed_by_another(place, monkeypatch):
    """It chooses ports, and listens there a moment later, on most of them in other threads."""
    launched, launch, as_it_is = [], engines._launch, engines.CONTROLLER
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(place + 1)]
        *free, taken = [server.getsockname()[1] for server in servers]
        for server in servers[:-1]:
            server.close()

        def the_first_on_a_taken_port(*arguments):
            ports = [] if launched else [f"--IPController.ports={port}" for port in (*free, taken)]
            launched.append(ports)
            monkeypatch.setattr(engines, "CONTROLLER", as_it_is + ports)
            return launch(*arguments)

        monkeypatch.setattr(engines, "_launch", the_first_on_a_taken_port)
        begin = time.monotonic()
        if PORTS[place] == "control":
            with engines.start(1, "gloo", {}, 60).undo:
                assert len(launched) == 2
        else:
            with pytest.raises(RankFailure, match=engines.PORT_TAKEN):
                engines.start(1, "gloo", {}, 60, tries=1)
        assert time.monotonic() - begin < 55  # not until the 60 s are over


@MPI
def test_a_launcher_that_ends_at_once_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(engines, "_mpiexec", lambda: shutil.which("false"))
    begin = time.monotonic()
    with pytest.raises(RankFailure, match="one ended at once"):
        engines.start(1, "mpi", {}, 60)
    assert time.monotonic() - begin < 30


def test_a_connection_file_left_behind_does_not_mislead(ipcluster, tmp_path, monkeypatch):
    security = tmp_path / "profile_default" / "security"
    security.mkdir(parents=True)
    left = json.loads(ipcluster.file.read_text())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1)
    assert engines.attach(1, None) is None, "no file"
    ports = {key: 1 for key, value in left.items() if isinstance(value, int)}  # nothing listens on port 1
    (security / "ipcontroller-client.json").write_text(json.dumps({**left, **ports}))
    assert engines.attach(1, None) is None, "a file and no controller"


SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def with_id(pid):
    """A sleeping process that has this id, or None where the system does not grant it."""
    for _ in range(50):
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        except OSError:
            return None
        process = subprocess.Popen(SLEEP)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return None


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


@LINUX
def test_who_has_the_id_of_one_of_ours_by_now_is_not_killed(tmp_path):
    ours = subprocess.Popen(SLEEP)
    reaper = start_child("reaper", tmp_path / "gone")
    print(ours.pid, file=reaper.stdin, flush=True)
    wait_until(lambda: psutil.Process(reaper.pid).status() == psutil.STATUS_SLEEPING)
    time.sleep(0.5)  # it has read the line
    ours.kill()
    ours.wait()
    stranger = with_id(ours.pid)
    reaper.communicate()
    if stranger is None:
        pytest.skip("no process got the id again")
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_killed_kernel_takes_its_engines_along():
    program = """if True:
        import sys, time
        from helpers.cluster import engines, forks
        engines.probe = lambda client, timeout: [  # (without TensorFlow)
            {"id": 0, "pid": client[0].apply_sync(__import__("os").getpid), "host": "", "cores": 1, "gloo": True,
             "mpi_rank": None, "mpi": False}]
        group = engines.start(1, None, {}, 30)
        print(group.found[0]["pid"], forks.forker().process.pid, flush=True)
        time.sleep(60)
    """
    kernel = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    engine, forker = (psutil.Process(int(pid)) for pid in kernel.stdout.readline().split())
    family = {engine, forker, *forker.children(recursive=True)}
    assert len(family) > 3  # also the controller, and a child of its own
    kernel.kill()
    kernel.communicate()
    psutil.wait_procs(family, timeout=20)
    assert not any(process.is_running() for process in family)


# Dead ranks


def test_a_rank_that_dies_in_a_collective_is_named_and_connect_works_again(ipcluster, capsys):
    ranks = connect(3, grace=10, env=SOON)
    assert "has 2 engine(s), 3 are needed: starting engines of our own" in capsys.readouterr().out
    assert not {e["pid"] for e in ranks.engines} & set(ipcluster.pids)
    assert [answer[:3] for answer in ranks.run(where)] == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
    start = time.monotonic()
    with pytest.raises(RankFailure, match=r"^rank 1 \(engine 1\) died, killed by SIGKILL") as failure:
        ranks.run(die, 1, True)
    assert time.monotonic() - start < 40
    assert "about to die" in str(failure.value)
    wait_until(lambda: not any(psutil.pid_exists(engine["pid"]) for engine in ranks.engines))
    with connect(2) as ranks:
        assert len(ranks.run(where)) == 2


def test_ranks_whose_forker_is_killed_end_with_all_that_they_started(ipcluster):
    ranks = connect(2, attach=False, grace=1)
    forker = psutil.Process(forks.forker().process.pid)
    ranks.run(lambda: subprocess.Popen(SLEEP).pid)
    family = forker.children(recursive=True)
    assert len(family) > 5  # the controller has a child of its own
    forker.kill()
    with pytest.raises(RankFailure, match="rank 0 .* died"):
        ranks.run(time.sleep, 60)
    assert psutil.wait_procs(family, timeout=20)[1] == []
    with connect(2, attach=False) as ranks:
        assert {answer[1] for answer in ranks.run(where)} == {0, 1}
        assert {ip for _, ip in listening(psutil.Process(e["pid"]) for e in ranks.engines)} == {"127.0.0.1"}


class Kernel:
    """A notebook kernel, as a reader has it."""

    def __enter__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3")
        return self

    def __exit__(self, *exc):
        self.client.stop_channels()
        self.manager.shutdown_kernel()

    def run(self, code, until="", then=None):
        """Run a cell; returns what it printed and raised. As soon as `until` is printed `then` is called."""
        shown, request = "", self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            shown += content.get("text", "") + "\n".join(content.get("traceback", []))
            if then and until in shown:
                then()
                then = None
            if content.get("execution_state") == "idle":
                return shown


def test_px_cells_an_interrupt_and_a_rank_that_dies_outside_of_a_collective(ipcluster):
    with Kernel() as kernel:
        assert "2 ranks ready" in kernel.run("from helpers.cluster import connect; ranks = connect(2)")
        shown = kernel.run(f"%%px\n{HVD}\nprint('rank', hvd.rank())\nprint('old', end=' ')")
        assert shown.index("rank 0") < shown.index("rank 1")
        assert "NameError" in kernel.run("%px undefined_name")

        kernel.run("ranks = connect(2, attach=False, grace=1)")
        shown = kernel.run("%%px\nimport os, signal, horovod.tensorflow as hvd\n"
                           "if hvd.rank() == 1: os.kill(os.getpid(), signal.SIGKILL)")  # fmt: skip
        assert "RankFailure" in shown and "rank 1 (engine 1) died, killed by SIGKILL" in shown
        assert "Handling execute_request" in shown.split("The last lines of its log:")[1]
        assert "call connect() again" in kernel.run("%px 1")

        assert "2 ranks ready" in kernel.run("ranks = connect(2, attach=False)")
        pids = kernel.run("print(*[e['pid'] for e in ranks.engines])").split()

        def interrupt():
            threading.Timer(2, kernel.manager.interrupt_kernel).start()

        assert "KeyboardInterrupt" in kernel.run(STUCK, then=interrupt)
        wait_until(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids))
        assert "2 ranks ready" in kernel.run("ranks = connect(2)")


# MPI


@MPI
@pytest.mark.parametrize("user", ["this user", "nobody"])
def test_mpiexec_starts_more_ranks_than_cores_for_anyone(user, tmp_path):
    become = []
    if user == "nobody":
        if os.getuid() or not shutil.which("setpriv"):
            pytest.skip("only root can become another user")
        # ... who keeps root's right to read files: the interpreter may lie in /root
        become = ["setpriv", "--reuid=65534", "--clear-groups", "--securebits=+no_setuid_fixup"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    n = psutil.cpu_count() + 1
    program = "import os; from mpi4py import MPI; print(os.getuid(), MPI.COMM_WORLD.allreduce(1))"
    command = [shutil.which("mpiexec"), "-n", str(n), sys.executable, "-c", program]
    env = {**os.environ, **MPI_ENV, "HOME": str(tmp_path), "TMPDIR": "/tmp"}
    done = subprocess.run([*become, *command], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{65534 if become else os.getuid()} {n}"] * n


@MPI
def test_mpi_engines_of_our_own_more_than_cores_and_what_they_listen_on():
    n = joblib.cpu_count() + 1
    with connect(n, controller="mpi", grace=5) as ranks:
        assert ranks.controller == "mpi"
        folder = ranks.run(lambda: dict(os.environ))[0]["OMPI_MCA_btl_sm_backing_directory"]
        assert os.path.isdir(folder)
        assert [answer[:3] for answer in ranks.run(where)] == [(rank, rank, n) for rank in range(n)]
        found = listening([psutil.Process(e["pid"]) for e in ranks.engines])
        assert {address for _, address in found} == {"127.0.0.1"}, "the ranks, which exchange by shared memory"
        launcher = psutil.Process(ranks.engines[0]["pid"]).parent()
        # known and said in README: mpiexec itself waits for daemons of other hosts, and no option changes that
        assert {address for _, address in listening([launcher])} <= {"127.0.0.1", "0.0.0.0", "::"}
        with pytest.raises(RankFailure, match="died"):
            ranks.run(die, 1, True)
    wait_until(lambda: not any(psutil.pid_exists(engine["pid"]) for engine in ranks.engines))
    assert not os.path.exists(folder)


@MPI
def test_attached_mpi_engines_keep_their_horovod(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # beside the other ipcluster
    with Cluster(2, "--engines=mpi") as cluster:
        for _ in range(2):
            with connect(2) as ranks:
                assert ranks.controller == "mpi"
                assert ranks.run(where) == [(0, 0, 2, 3.0), (1, 1, 2, 3.0)]
        with pytest.raises(Exception, match="already run Horovod with 2 ranks, and MPI can be initialised only once"):
            connect(1)
        assert all(psutil.pid_exists(pid) for pid in cluster.pids)
