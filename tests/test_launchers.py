"""examples/ and what `connect` checks on several hosts. (The launchers also run in notebook 13.)"""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.host_faults import MPIRUN, ROOT
from helpers.cluster import HostsUnavailable, hosts
from helpers.cluster.rendezvous import check_own_names

EXAMPLES = Path(__file__).parent.parent / "examples"
QUIET = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.fixture(scope="module")
def machines():
    try:
        with hosts(2) as found:
            yield found
    except HostsUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def train():
    spec = importlib.util.spec_from_file_location("train", EXAMPLES / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(script, path, *options, env=None):
    command = [sys.executable, EXAMPLES / script, "--steps", "20", "--json", path, *options]
    subprocess.run(command, env=env or QUIET, check=True, capture_output=True)
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def alone(logs):
    """What the script says in one process."""
    alone = {**QUIET, "OMPI_MCA_btl": "self"}  # without it Open MPI leaves 16 MB in /dev/shm
    return losses("train.py", logs / "alone", "--logs", logs, env=alone)


def check_two_hosts(ranks, alone):
    """One rank on each host, with the losses of one process."""
    found = [(r["rank"], r["size"], r["local"], r["cross"], r["host"]) for r in ranks]
    assert found == [(0, 2, 0, 0, "host0"), (1, 2, 0, 1, "host1")]
    assert np.allclose(ranks[0]["losses"][:20], alone[0]["losses"], rtol=1e-4)


def test_mpirun_on_two_hosts(machines, alone, tmp_path):
    if not shutil.which("mpirun", path=os.path.dirname(sys.executable)):
        pytest.skip("there is no mpirun in this environment")
    script = [sys.executable, EXAMPLES / "train.py", "--steps", "20", "--json", tmp_path / "out"]
    done = machines.run(0, [*MPIRUN, *script], env=ROOT)
    assert done.returncode == 0, done.stdout
    check_two_hosts(json.loads((tmp_path / "out").read_text()), alone)


def test_slurm_on_two_hosts(machines, alone):
    if not shutil.which("slurmctld"):
        pytest.skip("Slurm is not installed (Debian: slurmctld slurmd slurm-client munge)")
    slurm = machines.folder / "slurm"
    slurm.mkdir()
    (slurm / "munge.key").write_bytes(os.urandom(128))
    (slurm / "munge.key").chmod(0o400)
    env = {"SLURM_CONF": str(slurm / "slurm.conf")}
    for host in (0, 1):
        node = machines.run(host, ["sh", EXAMPLES / "slurm_node.sh", slurm, "host[0-1]"], env=env)
        assert node.returncode == 0, node.stdout
    env |= {"LAN": "lan0", "PYTHON": sys.executable, "SCRIPT": str(EXAMPLES / "train.py")}
    batch = ["sbatch", "--wait", "--ntasks-per-node=1", EXAMPLES / "train.slurm"]
    done = machines.run(0, batch, env=env, cwd=machines.folder)
    assert done.returncode == 0, done.stdout + "".join(log.read_text() for log in machines.folder.glob("train-*.log"))
    check_two_hosts(json.loads(next(machines.folder.glob("train-*.json")).read_text()), alone)


def test_two_mirrored_replicas_have_the_losses_of_the_script_alone(alone, logs, tmp_path):
    assert [one | {"losses": None, "host": ""} for one in alone] == [
        {"rank": 0, "size": 1, "local": 0, "cross": 0, "host": "", "losses": None}
    ]
    assert alone[0]["losses"][-1] < 0.9 * alone[0]["losses"][0]
    mirrored = losses("mirrored.py", tmp_path / "mirrored")
    assert np.allclose(mirrored, alone[0]["losses"], rtol=1e-4)
    assert list((logs / "rank-0").glob("events.out.tfevents.*"))


class FakeConfig:
    """tf.config of a host with so many GPUs; notes what is set."""

    def __init__(self, gpus):
        self.gpus, self.said = gpus, []
        self.experimental = SimpleNamespace(set_memory_growth=lambda gpu, on: self.said.append(("growth", gpu, on)))

    def list_physical_devices(self, kind):
        assert kind == "GPU"
        return self.gpus

    def set_visible_devices(self, device, kind):
        self.said.append(("visible", device, kind))


def test_each_local_rank_gets_a_gpu_of_its_own(train):
    for local_rank, gpu in enumerate("abcd"):
        config = FakeConfig(list("abcd"))
        train.use_gpu(local_rank, config)
        assert config.said == [("visible", gpu, "GPU"), ("growth", gpu, True)]


def test_more_ranks_than_gpus_share_them_and_without_gpus_nothing_is_set(train):
    config = FakeConfig(["a", "b"])
    train.use_gpu(3, config)
    assert config.said[0] == ("visible", "b", "GPU")
    config = FakeConfig([])
    train.use_gpu(0, config)
    assert config.said == []


SPOIL = "sed 's/^.* host1$/127.0.1.1 host1/' /etc/hosts > /run/spoilt; mount --bind /run/spoilt /etc/hosts; exec \"$@\""


def spoilt(machines, *command, **env):
    """A command on host1, whose own name is 127.0.1.1 as on a fresh Debian."""
    return machines.run(1, ["unshare", "-m", "sh", "-c", SPOIL, "sh", *command], env=env)


def test_the_script_says_that_a_hosts_own_name_leads_to_itself(machines):
    command = [sys.executable, EXAMPLES / "train.py", "--steps", "1"]
    done = spoilt(machines, *command, HOROVOD_CROSS_SIZE="2")
    assert done.returncode == 1 and "host1 calls itself 127.0.1.1" in done.stdout
    assert "Traceback" not in done.stdout


def test_connect_says_it_before_init(machines):
    ask = "from helpers.cluster import on_engine as e; print(e._own_address())"
    said = [machines.run(0, [sys.executable, "-c", ask]).stdout, spoilt(machines, sys.executable, "-c", ask).stdout]
    found = [{"host": f"host{i}", "address": address.strip()} for i, address in enumerate(said)]
    assert found[0]["address"] == machines.addresses[0]
    with pytest.raises(ValueError, match="^host1 calls itself 127.0.1.1, where nobody else reaches it: .*/etc/hosts"):
        check_own_names(found)
    check_own_names(found[1:])  # one host alone may
    check_own_names([found[0], {"host": "host2", "address": "10.77.0.13"}])


def test_environments_are_compared(machines, tmp_path):
    script = ["sh", EXAMPLES / "same_environment.sh", "host0", "host1"]
    same = machines.run(0, script, env={"PYTHON": sys.executable})
    assert same.returncode == 0 and same.stdout.endswith("equal environments\n"), same.stdout
    assert len(same.stdout.splitlines()) == 3
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\necho 3.11.7 x86_64 100 "$(hostname)"\n')
    other.chmod(other.stat().st_mode | stat.S_IEXEC)
    different = machines.run(0, script, env={"PYTHON": str(other)})
    assert different.returncode == 1 and "2 different environments" in different.stdout


TINY = {
    "bandwidth": "--words 60000 --vocabulary 500 --links unlimited --repeats 1 --epochs 1 --strategies blocks",
    "servers_bandwidth": "--words 60000 --vocabulary 500 --links unlimited --repeats 1 --steps 5 --pairs 3200",
    "host_faults": "--cut 1 --limit 1 --systems horovodrun",
}


def test_the_benchmarks_on_hosts_print_and_save_rows(machines, tmp_path):
    """All at once: each makes hosts of its own."""
    started = {}
    for name, options in TINY.items():
        command = [sys.executable, "-m", f"benchmarks.{name}", *options.split(), "--json", tmp_path / name]
        started[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = {name: process.communicate(timeout=400)[0] for name, process in started.items()}
    for name, process in started.items():
        assert process.returncode == 0, said[name]
    rows = {name: json.loads((tmp_path / name).read_text())["rows"] for name in TINY}
    assert rows["host_faults"][0]["goes_on_after_cut"] and rows["host_faults"][0]["stood_still"] >= 1
    for name in ("bandwidth", "servers_bandwidth"):
        (row,) = rows[name]
        assert row["predicted"] > 0 and row["one"] > 0 and min(row["speeds"]) > 0 and "unlimited" in said[name]
