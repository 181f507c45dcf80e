"""Workers and parameter servers in processes of their own: trained on, killed, restarted, restored, left alone."""

import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import tensorflow as tf
from kernels import Kernel
from shown import taken
from waiting import wait_for

from helpers.cluster import parameter_servers, server_processes, sharded_tables
from helpers.cluster.parameter_servers import attach_servers, start_servers
from helpers.cluster.processes import Family, ended, kill
from helpers.cluster.server_processes import ServerFailure
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec import pair_dataset

pytestmark = pytest.mark.servers
ROWS, DIM = 20_001, 16
adagrad = taken("18", "adagrad", tf=tf, shards=sharded_tables.shards).adagrad


def gone(pids, seconds=15):
    deadline = time.monotonic() + seconds
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(psutil.pid_exists(pid) for pid in pids)


@pytest.fixture(scope="module")
def cluster():
    with start_servers(2, 2) as cluster:
        yield cluster
    assert gone(cluster.pids.values())


# ---- Tables and steps


def test_a_table_is_made_in_shards_on_the_servers(cluster):
    table = sharded_tables.make_table(cluster.strategy, (ROWS, DIM), -0.5, 0.5, seed=3)
    parts = sharded_tables.shards(table)
    assert [part.shape for part in parts] == [(10_001, DIM), (10_000, DIM)]
    assert [part.device.split("/")[3] + part.device.split("/")[1] for part in parts] == ["task:0job:ps", "task:1job:ps"]
    values = table.numpy()
    assert values.dtype == np.float32 and values.shape == (ROWS, DIM)
    assert -0.5 <= values.min() < -0.49 and 0.49 < values.max() < 0.5 and abs(values.mean()) < 0.01
    assert len(np.unique(values[:, 0])) > ROWS * 0.99
    expected = tf.random.stateless_uniform([sharded_tables.BLOCK_ROWS, DIM], [3, 1], -0.5, 0.5)
    np.testing.assert_array_equal(values[8192:16384], expected)
    assert (sharded_tables.make_table(cluster.strategy, (ROWS, DIM), 0.1, 0.1).numpy() == np.float32(0.1)).all()


def test_a_sparse_step_changes_its_rows_as_numpy_does(cluster):
    tables = [sharded_tables.make_table(cluster.strategy, (ROWS, DIM), -0.5, 0.5, seed=3) for _ in range(2)]
    squares = sharded_tables.make_table(cluster.strategy, (ROWS, DIM), 0.1, 0.1)
    before = tables[0].numpy()
    ids = np.array([5, 20_000, 5, 10_001, 10_000, 5], np.int32)
    weights = np.arange(1, 7, dtype=np.float32)[:, None]

    @tf.function
    def step():
        with tf.GradientTape(persistent=True) as tape:
            losses = [tf.reduce_sum(weights * sharded_tables.lookup(table, ids) ** 2) for table in tables]
            losses[0] += tf.reduce_sum(sharded_tables.lookup(tables[0], ids[:1]))
        (gradients,) = sharded_tables.gradients(tape, losses[0], tables[:1])
        adagrad(tables[0], squares, gradients, 0.1)
        rows = [tf.shape(gradient.indices)[0] for gradient in gradients]
        (gradients,) = sharded_tables.gradients(tape, losses[1], tables[1:])
        sharded_tables.sgd(tables[1], gradients, 0.1)
        return rows

    rows = cluster.coordinator.schedule(step)
    cluster.coordinator.join()
    assert rows.fetch() == [2, 2]

    gradient = np.zeros_like(before)
    np.add.at(gradient, ids, 2 * weights * before[ids])
    np.testing.assert_allclose(tables[1].numpy(), before - 0.1 * gradient, atol=1e-6)
    gradient[ids[0]] += 1
    total = np.float32(0.1) + gradient**2
    np.testing.assert_allclose(squares.numpy(), total, atol=1e-5)
    np.testing.assert_allclose(tables[0].numpy(), before - 0.1 * gradient / (np.sqrt(total) + 1e-7), atol=1e-6)
    untouched = np.setdiff1d(np.arange(ROWS), ids)
    for table in tables:
        np.testing.assert_array_equal(table.numpy()[untouched], before[untouched])


# ---- Asynchronous word2vec, with a worker and a server killed


class Model:
    """Skip-gram with shared negatives on sharded tables; `done` counts on a server the steps that were taken."""

    def __init__(self, strategy):
        self.centers = sharded_tables.make_table(strategy, (ROWS, DIM), -0.5 / DIM, 0.5 / DIM, seed=1)
        self.contexts = sharded_tables.make_table(strategy, (ROWS, DIM))
        self.squares = [sharded_tables.make_table(strategy, (ROWS, DIM), 0.1, 0.1) for _ in range(2)]
        with strategy.scope():
            self.done = tf.Variable(0, dtype=tf.int64)
        self.checkpoint = tf.train.Checkpoint(
            centers=self.centers, contexts=self.contexts, squares=self.squares, done=self.done
        )

    def loss(self, centers, contexts, noise):
        rows = sharded_tables.lookup(self.centers, centers)
        others = sharded_tables.lookup(self.contexts, tf.concat([contexts, noise], 0))
        true = tf.reduce_sum(rows * others[:-16], axis=1)
        sampled = tf.matmul(rows, others[-16:], transpose_b=True)
        return tf.reduce_mean(tf.nn.softplus(-true)) + 5 * tf.reduce_mean(tf.nn.softplus(sampled))

    def step(self, centers, contexts):
        tables = [self.centers, self.contexts]
        with tf.GradientTape() as tape:
            loss = self.loss(centers, contexts, tf.random.uniform([16], 0, 600, tf.int32))
            total = loss * tf.cast(tf.size(centers), tf.float32)
        for table, squares, gradients in zip(
            tables, self.squares, sharded_tables.gradients(tape, total, tables), strict=True
        ):
            adagrad(table, squares, gradients, 0.1)
        self.done.assign_add(1)
        return loss


@pytest.fixture(scope="module")
def ids():
    corpus = load_corpus("planted", n_words=20_000)
    return Vocab.build(corpus.words).encode(corpus.words)


def pairs(cluster, ids):
    dataset = cluster.coordinator.create_per_worker_dataset(lambda: pair_dataset(ids, 256, 3, seed=1).repeat())
    return iter(dataset)


def test_training_ends_though_the_workers_are_killed_and_come_back(cluster, ids):
    model, batches = Model(cluster.strategy), pairs(cluster, ids)
    steps = sharded_tables.bundle(model.step, 10)
    held_out = next(iter(pair_dataset(ids, 4096, 3, seed=2)))
    held_out_loss = tf.function(lambda: model.loss(*held_out, tf.range(0, 592, 37)))
    before = cluster.coordinator.schedule(held_out_loss).fetch()
    losses = [cluster.coordinator.schedule(steps, (batches,)) for _ in range(20)]
    while model.done.numpy() < 20:
        time.sleep(0.05)
    pid = cluster.pids["worker", 0]
    cluster.kill("worker", 0)
    cluster.kill("worker", 1)
    assert not psutil.pid_exists(pid)
    losses += [cluster.coordinator.schedule(steps, (batches,)) for _ in range(10)]
    cluster.restart("worker", 0)
    cluster.restart("worker", 1)
    assert cluster.pids["worker", 0] != pid
    losses += [cluster.coordinator.schedule(steps, (batches,)) for _ in range(10)]
    cluster.coordinator.join()
    assert len([loss.fetch() for loss in losses]) == 40 and model.done.numpy() >= 400
    # mostly near 0.55 by now; how stale the gradients were is the machine's business, so it may take longer
    for _ in range(10):
        after = cluster.coordinator.schedule(held_out_loss).fetch()
        if after < 0.8 * before:
            break
        for _ in range(20):
            cluster.coordinator.schedule(steps, (batches,))
        cluster.coordinator.join()
    assert after < 0.8 * before


def test_a_killed_server_ends_the_run_and_comes_back_from_the_checkpoint(cluster, ids, tmp_path):
    model, batches = Model(cluster.strategy), pairs(cluster, ids)
    steps = sharded_tables.bundle(model.step, 5)
    cluster.coordinator.schedule(steps, (batches,))
    cluster.coordinator.join()
    saved, path = model.centers.numpy(), model.checkpoint.write(str(tmp_path / "model"))

    for _ in range(200):
        cluster.coordinator.schedule(steps, (batches,))
    cluster.kill("ps", 1)
    with pytest.raises(tf.errors.UnavailableError):
        cluster.coordinator.join()

    cluster.restart("ps", 1)
    model = Model(cluster.strategy)
    assert model.done.numpy() == 0
    model.checkpoint.read(path).assert_consumed()
    np.testing.assert_array_equal(model.centers.numpy(), saved)
    steps, batches = sharded_tables.bundle(model.step, 5), pairs(cluster, ids)
    for _ in range(4):
        cluster.coordinator.schedule(steps, (batches,))
    cluster.coordinator.join()
    assert model.done.numpy() == 25


def test_another_cluster_in_this_process_and_another_number_of_servers(cluster, monkeypatch, tmp_path):
    """The second cluster closes the first; a port that is taken costs it one more try."""
    first = sharded_tables.make_table(cluster.strategy, (ROWS, DIM), -0.5, 0.5, seed=3)
    path = tf.train.Checkpoint(table=first).write(str(tmp_path / "table"))
    values, before = first.numpy(), list(cluster.pids.values())
    with socket.create_server(("", 0)) as taken:
        real, asked = parameter_servers._free_addresses, []

        def addresses(n):
            asked.append(n)
            return real(n)[:-1] + [f"127.0.0.1:{taken.getsockname()[1]}"] if len(asked) == 1 else real(n)

        monkeypatch.setattr(parameter_servers, "_free_addresses", addresses)
        with start_servers(1, 3) as second:
            assert len(asked) == 2 and gone(before)
            assert len(second.pids) == 4
            other = sharded_tables.make_table(second.strategy, (ROWS, DIM), -0.5, 0.5, seed=3)
            assert len(sharded_tables.shards(other)) == 3
            np.testing.assert_array_equal(other.numpy(), values)
            restored = sharded_tables.make_table(second.strategy, (ROWS, DIM))
            tf.train.Checkpoint(table=restored).read(path).assert_consumed()
            np.testing.assert_array_equal(restored.numpy(), values)
            with pytest.raises(ValueError, match="no server 'ps' 3 started here"):
                second.kill("ps", 3)
        monkeypatch.setattr(parameter_servers, "PORT_TRIES", 1)
        asked.clear()
        with pytest.raises(ServerFailure, match="ps 0 died while it started(.|\n)*Could not start gRPC server"):
            start_servers(1, 1)
    assert tf.function(lambda x: 2 * x)(tf.constant(2)).numpy() == 4


# ---- Servers that run elsewhere, that do not answer, that cannot start_servers


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
        for _ in range(2):
            with attach_servers({"cluster": spec}) as cluster:
                total = cluster.coordinator.schedule(tf.function(lambda: tf.constant(1) + 1))
                cluster.coordinator.join()
                assert total.fetch() == 2
                with pytest.raises(ValueError, match="they run elsewhere"):
                    cluster.kill("ps", 0)
        assert not any(map(ended, processes))
        cluster = attach_servers({"cluster": spec})
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
    table = tf.Variable([[1.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(sharded_tables.lookup(table, [0]))
    with pytest.raises(ValueError, match="a table without gradient"):
        sharded_tables.gradients(tape, 2 * loss, [table])
    with pytest.raises(ValueError, match="workers=2, ps=0: at least 1 of each is needed"):
        start_servers(2, 0)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG names no chief and no worker and no ps"):
        attach_servers()
    for text, message in (("{not json", "TF_CONFIG is not JSON, Expecting property name"), ("[1]", "must be a dict")):
        with pytest.raises(ValueError, match=message):
            attach_servers(text)
    with pytest.raises(SystemExit, match="usage"):
        parameter_servers.main(["chief"])
    monkeypatch.setenv("TF_CONFIG", '{"task": {"type": "ps", "index": 0}}')
    with pytest.raises(SystemExit, match="must name the task of this process: its task is .*ps"):
        parameter_servers.main(["worker"])


def test_nothing_forks():
    """On a Mac a process cannot rely on what its parent has imported: each one is a program of its own."""
    for folder in ("helpers", "examples"):
        for path in (Path(__file__).parents[1] / folder).rglob("*.py"):
            assert not {"os.fork", "multiprocessing"} & set(
                re.findall(r"os\.fork|multiprocessing", path.read_text())
            ), path


def test_a_system_without_affinity_starts_servers_too(monkeypatch):
    """A Mac has no os.sched_getaffinity."""
    seen = []
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(tf.distribute, "Server", lambda *arguments: seen.append(arguments) or tf.constant(0))
    with pytest.raises(AttributeError, match="target"):  # of what stands for the server
        server_processes.serve({"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}})
    assert seen[0][-1].intra_op_parallelism_threads >= 1


# ---- A notebook kernel: interrupted, started again, killed

START = "from helpers.cluster import start_servers\nimport tensorflow as tf, time\ncluster = start_servers(1, 1)\n"
NOBODY_CATCHES = """
import threading

def collected(error):
    class Mine:
        def __del__(self):
            raise error
    Mine()

def fails():
    raise tf.errors.UnavailableError(None, None, "a server has gone")

try:
    fails()
except tf.errors.UnavailableError as error:
    collected(error)
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
    with Kernel(TMPDIR=str(tmp_path)) as kernel:
        assert "1 workers and 1 parameter servers ready" in kernel.run(START)
        first = [int(pid) for pid in kernel.run("print(*cluster.pids.values())").split()]

        def interrupt():
            time.sleep(1)
            kernel.manager.interrupt_kernel()

        assert "KeyboardInterrupt" in kernel.run(STUCK, "waiting", interrupt)
        assert gone(first)
        assert "1 workers and 1 parameter servers ready" in kernel.run(START)
        second = [int(pid) for pid in kernel.run("print(*cluster.pids.values())").split()]
        assert len(second) == 2 and all(psutil.pid_exists(pid) for pid in second)
        assert kernel.errors == ""
        assert "Started server" in kernel.run("print(cluster.logs['chief', 0].read_text())")
        assert len(list(tmp_path.glob("servers-*"))) == 1
        kernel.run(NOBODY_CATCHES)
        assert kernel.errors == ""
        assert kernel.run("print(cluster.logs['chief', 0].read_text())").count("UnavailableError(") == 2
        kernel.run("tf.get_logger().warning('mine')\ncollected(ValueError('my own'))")
        assert "mine" in kernel.errors and "my own" in kernel.errors, "other messages are shown as before"
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
        assert gone(second), "servers outlived their killed kernel"
        wait_for(lambda: not [*tmp_path.glob("servers-*"), *tmp_path.glob("chief-*")])
