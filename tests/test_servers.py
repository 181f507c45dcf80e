"""Workers and parameter servers in processes of their own: trained on, killed, restarted, restored, left alone."""

import json
import os
import re
import signal
import socket
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import tensorflow as tf
from kernels import Kernel
from waiting import wait_for

from benchmarks import servers_bandwidth
from helpers.cluster import parameter_servers, server_processes, sharded_tables
from helpers.cluster.parameter_servers import attach_servers, start_servers
from helpers.cluster.processes import Family, ended, kill
from helpers.cluster.server_processes import ServerFailure
from helpers.cluster.sharded_tables import add, lookup, make_table, shards
from helpers.text import Vocab, load_corpus
from lesson_parts.server_steps import local_steps, negative_sampling

pytestmark = pytest.mark.servers
ROWS, DIM, BATCH, NOISE, LR = 20_001, 16, 32, 8, 0.3


def wait_until_gone(pids):
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))


@pytest.fixture(scope="module")
def cluster():
    with start_servers(2, 2) as cluster:
        yield cluster
    wait_until_gone(cluster.pids.values())


@pytest.fixture
def table(cluster):
    return make_table(cluster.strategy, (ROWS, DIM), -0.5, 0.5, seed=3)


# ---- Tables and steps


def test_a_table_is_drawn_in_blocks_and_lies_in_shards_on_the_servers(table):
    assert [part.shape for part in shards(table)] == [(10_001, DIM), (10_000, DIM)]
    homes = [tf.DeviceSpec.from_string(part.device) for part in shards(table)]
    assert {(home.job, home.task) for home in homes} == {("ps", 0), ("ps", 1)}
    size = [sharded_tables.BLOCK_ROWS, DIM]
    blocks = [tf.random.stateless_uniform(size, [3, block], -0.5, 0.5) for block in range(3)]
    np.testing.assert_array_equal(table.numpy(), np.concatenate(blocks)[:ROWS])


def test_a_sparse_step_changes_its_rows_as_numpy_does(cluster, table):
    """Adagrad's rows are computed by hand in lesson 18."""
    before, ids = table.numpy(), np.array([5, 20_000, 5, 10_001, 10_000, 5], np.int32)
    weights = np.arange(1, 7, dtype=np.float32)[:, None]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * lookup(table, ids) ** 2)
        (gradients,) = sharded_tables.gradients(tape, loss, [table])
        sharded_tables.sgd(table, gradients, 0.1)
        return [tf.shape(gradient.indices)[0] for gradient in gradients]

    assert cluster.coordinator.schedule(step).fetch() == [2, 2]
    gradient = np.zeros_like(before)
    np.add.at(gradient, ids, 2 * weights * before[ids])
    np.testing.assert_allclose(table.numpy(), before - 0.1 * gradient, atol=1e-6)
    untouched = np.setdiff1d(np.arange(ROWS), ids)
    np.testing.assert_array_equal(table.numpy()[untouched], before[untouched])


def test_add_finds_the_shard_of_each_row(table):
    middle = shards(table)[0].shape[0]
    rows = np.array([0, 5, middle - 1, middle, ROWS - 1])
    for some in (rows, rows[:3], rows[3:], rows[:0]):
        change = np.arange(1, len(some) + 1, dtype=np.float32)[:, None] * np.ones(DIM, np.float32)
        expected = table.numpy()
        expected[some] += change
        add(table, tf.constant(some, tf.int32), tf.constant(change))
        np.testing.assert_array_equal(table.numpy(), expected)


# ---- The local steps of lesson 16, which compares them with plain ones in one process


def draw(k):
    """The rows of k steps: of the centers, of the others, of their biases. Few words, so that steps share rows."""
    rng = np.random.default_rng(0)
    words = rng.choice(ROWS, 60, replace=False).astype(np.int32)
    centers, others = rng.choice(words, (k, BATCH)), rng.choice(words, (k, BATCH + NOISE))
    return [centers, others, others]


def test_local_steps_on_servers_are_those_of_one_process(cluster):
    """One call after the other, of 10 steps, to 1e-5. Two tables lie on two servers, the biases on one."""
    rng, ids, k = np.random.default_rng(1), draw(40), 10
    starts = [rng.normal(0, 0.3, shape).astype(np.float32) for shape in ((ROWS, DIM), (ROWS, DIM), (ROWS,))]
    here = [tf.Variable(start) for start in starts]
    expected_loss = tf.function(lambda: local_steps(here, ids, negative_sampling, LR))()
    tables = [make_table(cluster.strategy, start.shape) for start in starts]
    assert [len(shards(table)) for table in tables] == [2, 2, 1]
    for table, start in zip(tables, starts, strict=True):
        add(table, tf.range(ROWS), tf.constant(start))
    steps = tf.function(lambda some: local_steps(tables, some, negative_sampling, LR))
    losses = []
    for first in range(0, 40, k):
        some = [tf.constant(part[first : first + k]) for part in ids]
        losses.append(cluster.coordinator.schedule(steps, (some,)).fetch())
    assert np.mean(losses) == pytest.approx(float(expected_loss), rel=1e-4)
    for table, expected, start, used in zip(tables, here, starts, ids, strict=True):
        found = tf.convert_to_tensor(table).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert np.abs(found - start).max() > 0.001
        untouched = np.setdiff1d(np.arange(ROWS), used)
        np.testing.assert_array_equal(found[untouched], start[untouched])


def test_rows_are_read_before_they_change():
    """A loss whose gradient does not depend on the rows lets an update in place overtake the reading of its rows."""
    table, ids = tf.Variable(tf.ones([4, 2])), np.zeros([50, 3], np.int32)

    @tf.function
    def steps():
        return local_steps([table], [ids], lambda rows: tf.reduce_sum(rows), 0.01)

    expected = np.mean([6 * (1 - 0.03 * step) for step in range(50)])
    for run in range(20):
        table.assign(tf.ones([4, 2]))
        assert float(steps()) == pytest.approx(expected, abs=1e-4), run
        np.testing.assert_allclose(table, [[-0.5, -0.5], [1, 1], [1, 1], [1, 1]], atol=1e-5)


def test_the_changes_of_two_workers_add_up(cluster):
    """With a loss whose gradient is 1 everywhere, each row goes down by lr for each time that it was used."""
    ids, lr = draw(5)[:2], 0.25
    tables = [make_table(cluster.strategy, (ROWS, DIM)) for _ in ids]

    @tf.function
    def steps():
        local_steps(tables, ids, lambda *rows: sum(map(tf.reduce_sum, rows)), lr)
        return tf.distribute.coordinator.experimental_get_current_worker_index()

    runs, workers = 0, set()
    while workers != {0, 1} and runs < 20_000:  # a busy machine may let one worker do the first hundred alone
        calls = [cluster.coordinator.schedule(steps) for _ in range(100)]
        workers |= {int(call.fetch()) for call in calls}
        runs += len(calls)
    assert workers == {0, 1}
    for table, some in zip(tables, ids, strict=True):
        used = np.bincount(some.ravel(), minlength=ROWS)[:, None]
        missing = table.numpy() + lr * runs * used
        # Servers add without a lock of their own (lesson 17): two pushes of a row in the same instant may lose parts.
        # A worker that wrote its copy back instead of pushing changes would lose about half.
        assert (missing >= 0).all() and missing.sum() < 0.05 * lr * runs * used.sum() * DIM


# ---- Killed and restarted; lesson 20 trains meanwhile


def test_work_waits_for_killed_workers_and_goes_on_when_they_are_back(cluster):
    with cluster.strategy.scope():
        done = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def count():
        for _ in tf.range(100):
            done.assign_add(1)

    for _ in range(40):
        cluster.coordinator.schedule(count)
    wait_for(lambda: done.numpy() > 200, every=0.02)
    before = dict(cluster.pids)
    for index in (0, 1):
        cluster.kill("worker", index)
        assert not psutil.pid_exists(before["worker", index])
    for _ in range(10):
        cluster.coordinator.schedule(count)
    for index in (0, 1):
        cluster.restart("worker", index)
        assert cluster.pids["worker", index] != before["worker", index]
    cluster.coordinator.join()
    assert done.numpy() >= 5_000, "fifty calls; what a killed one had done, it does again"


# ---- The benchmark of lesson 16's steps, here on one host


def test_the_speed_on_a_link_is_measured_and_predicted(cluster, monkeypatch, capsys):
    words = load_corpus("planted", n_words=60_000, progress=False).words
    vocab = Vocab.build(words, 500)
    monkeypatch.setattr(servers_bandwidth, "servers", lambda machines, n: nullcontext(cluster))
    no_links, small = SimpleNamespace(bandwidth=lambda mbit: None), SimpleNamespace(pairs=3200, repeats=1, links=[None])
    (row,) = servers_bandwidth.measure(no_links, vocab.encode(words), vocab, 5, small)
    servers_bandwidth.show(row)
    assert row["predicted"] > 0 and row["one"] > 0 and min(row["speeds"]) > 0
    assert "unlimited" in capsys.readouterr().out


# ---- Other clusters in this process


def test_another_cluster_in_this_process_and_another_number_of_servers(cluster, table, tmp_path):
    """The second cluster closes the first."""
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "table"))
    values, before = table.numpy(), list(cluster.pids.values())
    with start_servers(1, 3) as second:
        assert len(second.pids) == 4
        wait_until_gone(before)
        restored = make_table(second.strategy, (ROWS, DIM))
        assert len(shards(restored)) == 3
        tf.train.Checkpoint(table=restored).read(path).assert_consumed()
        np.testing.assert_array_equal(restored.numpy(), values)
        with pytest.raises(ValueError, match="no server 'ps' 3 started here"):
            second.kill("ps", 3)


def test_ports_that_are_taken_cost_another_try_and_at_the_end_a_sentence(monkeypatch):
    real, asked = parameter_servers._free_addresses, []
    with socket.create_server(("", 0)) as taken:

        def addresses(n):
            asked.append(n)
            return real(n)[:-1] + [f"127.0.0.1:{taken.getsockname()[1]}"]

        monkeypatch.setattr(parameter_servers, "_free_addresses", addresses)
        monkeypatch.setattr(parameter_servers, "PORT_TRIES", 2)
        with pytest.raises(ServerFailure, match="ps 0 died while it started(.|\n)*Could not start gRPC server"):
            start_servers(1, 1)
    assert len(asked) == 2
    assert tf.function(lambda x: 2 * x)(tf.constant(2)).numpy() == 4, "this process computes as before"


# ---- Servers that run elsewhere, that do not answer, that cannot start


def test_attached_servers_are_used_again_and_never_stopped(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(parameter_servers, "STOP_SECONDS", 1)
    spec = {role: [address] for role, address in zip(("chief", "worker", "ps"), parameter_servers._free_addresses(3))}
    with Family("test", tmp_path) as family:
        processes = []
        for role in server_processes.ROLES:
            config = {"cluster": spec, "task": {"type": role, "index": 0}}
            command = [sys.executable, "-m", "helpers.cluster.parameter_servers", role]
            log = family.folder / role
            processes.append(family.start(command, env={"TF_CONFIG": json.dumps(config)}, log=log))
        with attach_servers({"cluster": spec}, timeout=200) as cluster:
            total = cluster.coordinator.schedule(tf.function(lambda: tf.constant(1) + 1))
            assert total.fetch() == 2
            with pytest.raises(ValueError, match="they run elsewhere"):
                cluster.kill("ps", 0)
        assert not any(map(ended, processes))
        cluster = attach_servers({"cluster": spec}, timeout=200)
        kill(processes[:1])
        cluster.close()
        assert f"from worker 0 at {spec['worker'][0]}: restart the kernel" in capsys.readouterr().out


def test_a_server_that_never_answers_is_named_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        spec = {"chief": ["127.0.0.1:1"], "worker": [address], "ps": [address]}
        with pytest.raises(ServerFailure, match=f"no answer within 2 s from worker 0 at {address}, ps 0 at {address}"):
            attach_servers(json.dumps({"cluster": spec}), timeout=2)


def test_wrong_arguments_are_one_sentence(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"task": {"type": "ps", "index": 0}}')
    table = tf.Variable([[1.0]])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(lookup(table, [0]))
    cases = [
        (ValueError, "a table without gradient", sharded_tables.gradients, tape, 2 * total, [table]),
        (ValueError, "workers=2, ps=0: at least 1 of each is needed", start_servers, 2, 0),
        (ValueError, "TF_CONFIG names no chief and no worker and no ps", attach_servers),
        (ValueError, "Expecting property name", attach_servers, "{not json"),
        (SystemExit, "usage: TF_CONFIG=", parameter_servers.main, ["chief"]),
        (SystemExit, "must name the task of this process: its task is .*ps", parameter_servers.main, ["worker"]),
    ]
    for error, sentence, call, *arguments in cases:
        with pytest.raises(error, match=sentence):
            call(*arguments)


def test_nothing_forks():
    """On a Mac a process cannot rely on what its parent has imported: each one is a program of its own."""
    for folder in ("helpers", "examples"):
        for path in (Path(__file__).parents[1] / folder).rglob("*.py"):
            assert not re.search(r"os\.fork|multiprocessing", path.read_text()), path


def test_a_system_without_affinity_starts_servers_too(monkeypatch):
    """A Mac has no os.sched_getaffinity."""
    seen = []
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(tf.distribute, "Server", lambda *arguments: seen.append(arguments) or tf.constant(0))
    with pytest.raises(AttributeError, match="target"):  # of what stands for the server
        server_processes.serve({"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}})
    assert seen[0][-1].intra_op_parallelism_threads >= 1


# ---- A notebook kernel: interrupted, started again, killed

START = "from helpers.cluster import start_servers\nimport tensorflow as tf\ncluster = start_servers(1, 1)"
NOBODY_CATCHES = """
import threading

def collected(error):
    class Mine:
        def __del__(self):
            raise error
    Mine()

def fails():
    raise tf.errors.UnavailableError(None, None, "a server has gone")

collected(tf.errors.UnavailableError(None, None, "a server has gone"))
thread = threading.Thread(target=fails)
thread.start()
thread.join()
"""
STUCK = """
forever = tf.function(lambda: tf.while_loop(lambda x: x < 1, lambda x: x * 1.0, [0.0]))
with cluster:
    cluster.coordinator.schedule(forever)
    print("waiting")
    cluster.coordinator.join()
"""


def test_a_kernel_interrupted_started_again_and_killed(tmp_path):
    def started():
        assert "1 workers and 1 parameter servers ready" in kernel.run(START)
        pids = [int(pid) for pid in kernel.run("print(*cluster.pids.values())").split()]
        assert len(pids) == 2 and all(map(psutil.pid_exists, pids))
        return pids

    def interrupt():
        time.sleep(1)
        kernel.manager.interrupt_kernel()

    with Kernel(TMPDIR=str(tmp_path)) as kernel:
        first = started()
        assert "KeyboardInterrupt" in kernel.run(STUCK, "waiting", interrupt)
        wait_until_gone(first)
        second = started()
        assert kernel.errors == ""
        assert "Started server" in kernel.run("print(cluster.logs['chief', 0].read_text())")
        assert len(list(tmp_path.glob("servers-*"))) == 1
        kernel.run(NOBODY_CATCHES)
        assert kernel.errors == ""
        assert kernel.run("print(cluster.logs['chief', 0].read_text())").count("UnavailableError(") == 2
        kernel.run("tf.get_logger().warning('mine')\ncollected(ValueError('my own'))")
        assert "mine" in kernel.errors and "my own" in kernel.errors, "other messages are shown as before"
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
        wait_until_gone(second)
        wait_for(lambda: not [*tmp_path.glob("servers-*"), *tmp_path.glob("chief-*")])
