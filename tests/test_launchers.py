"""What lessons 23 and 24 do not run: three real ranks, a wrong name, unequal environments, shared GPUs, benchmarks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import skipped_without_hosts
from shown import taken

from helpers.cluster.rendezvous import check_own_names
from laptop_cluster import hosts

EXAMPLES = Path(__file__).parent.parent / "examples"
SPOIL = "sed 's/^.* host1$/127.0.1.1 host1/' /etc/hosts > /run/spoilt; mount --bind /run/spoilt /etc/hosts; exec \"$@\""


@pytest.fixture(scope="module")
def machines():
    with skipped_without_hosts(), hosts(2) as found:
        assert found.address  # an ordinary user has none
        yield found


@pytest.mark.hosts
def test_connect_says_before_init_that_a_hosts_own_name_leads_to_itself(machines):
    ask = [sys.executable, "-c", "from helpers.cluster import on_engine as e; print(e._own_address())"]
    as_on_debian = ["unshare", "-m", "sh", "-c", SPOIL, "sh", *ask]  # host1's own name is 127.0.1.1
    said = [machines.run(0, ask).stdout, machines.run(1, as_on_debian).stdout]
    found = [SimpleNamespace(host=f"host{i}", address=address.strip()) for i, address in enumerate(said)]
    assert found[0].address == machines.addresses[0]
    with pytest.raises(ValueError, match="^host1 calls itself 127.0.1.1, where nobody else reaches it: .*/etc/hosts"):
        check_own_names(found)
    check_own_names(found[1:])  # one host alone may
    check_own_names([found[0], SimpleNamespace(host="host2", address="10.77.0.13")])


@pytest.mark.hosts
def test_unequal_environments_are_named(machines, tmp_path):
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\necho 3.11.7 x86_64 100 "$(hostname)"\n')
    other.chmod(0o755)
    done = machines.run(0, ["sh", EXAMPLES / "same_environment.sh", "host0", "host1"], env={"PYTHON": str(other)})
    assert done.returncode == 1 and "2 different environments" in done.stdout


@pytest.mark.parametrize(("gpus", "mine"), [("ab", ["b", ("b", True)]), ("", [])])
def test_more_ranks_than_gpus_share_them_and_without_gpus_nothing_is_set(monkeypatch, gpus, mine):
    monkeypatch.syspath_prepend(EXAMPLES)
    import train

    said = []
    config = SimpleNamespace(
        list_physical_devices=lambda kind: list(gpus),
        set_visible_devices=lambda gpu, kind: said.append(gpu),
        experimental=SimpleNamespace(set_memory_growth=lambda *growth: said.append(growth)),
    )
    train.use_gpu(3, config)
    assert said == mine


def losses_of_one_process(train, steps):
    """Of whole batches, without launcher and Horovod, by the step of lesson 23."""
    import tensorflow as tf

    step = taken("23", "training_step", tf=tf, train=train).training_step(train.make_tables(0))
    return [float(step(*map(tf.constant, batch))) for batch in train.batches(0, steps)]


@pytest.mark.slow
def test_three_real_ranks_have_the_losses_of_one_process(monkeypatch, tmp_path):
    """On parts that are not equal: 86, 85 and 85 pairs, which the factor in train.py weighs."""
    if not pytest.importorskip("horovod.tensorflow").gloo_built():
        pytest.skip("this Horovod has no Gloo")
    monkeypatch.syspath_prepend(EXAMPLES)
    import train

    result = tmp_path / "ranks.json"
    launcher = [Path(sys.executable).with_name("horovodrun"), "--gloo", "-np", "3", "-H", "localhost:3"]
    program = [sys.executable, EXAMPLES / "train.py", "--steps", "60", "--json", result]
    done = subprocess.run(
        [*launcher, *program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "HOROVOD_GLOO_TIMEOUT_SECONDS": "120"},
        cwd=tmp_path,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    ranks = json.loads(result.read_text())
    assert [(rank["rank"], rank["size"], rank["local"]) for rank in ranks] == [(0, 3, 0), (1, 3, 1), (2, 3, 2)]
    assert [len(range(train.BATCH)[rank::3]) for rank in range(3)] == [86, 85, 85]
    one = losses_of_one_process(train, 60)
    for rank in ranks:
        np.testing.assert_allclose(rank["losses"], one, rtol=1e-5)  # the tolerance of lesson 23


@pytest.mark.hosts
@pytest.mark.slow
def test_the_benchmark_of_host_faults_prints_and_saves_rows(machines, tmp_path):
    """It makes hosts of its own. Of the other two on hosts test_benchmarks and test_servers run the measurement."""
    out, small = tmp_path / "out.json", ["--cut", "1", "--limit", "1", "--systems", "horovodrun"]
    command = [sys.executable, "-m", "benchmarks.host_faults", *small, "--json", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["rows"][0]
    assert found["goes_on_after_cut"] and found["stood_still"] >= 1
