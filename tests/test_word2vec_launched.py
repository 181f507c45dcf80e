"""examples/word2vec.py as users start it: on two hosts with two ranks each, by all launchers, and when one is lost."""

import glob
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from browser import command_of, environment_of
from clusters import skipped_without_hosts
from waiting import wait_for

from helpers.text import load_corpus
from helpers.word2vec import load_vectors
from laptop_cluster import hosts

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAM = EXAMPLES / "word2vec.py"
PMIX = glob.glob("/usr/lib/*/pmix2/lib/libpmix.so")  # Debian: libpmix-dev
pytestmark = [pytest.mark.hosts, pytest.mark.slow]
SMALL = ["--size", "16", "--epochs", "10", "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a text of 200,000 words of the docs corpus, packed in two files."""
    folder = tmp_path_factory.mktemp("word2vec")
    words = load_corpus("docs", progress=False).words
    for name, part in (("one.txt", words[:150_000]), ("two.txt", words[150_000:200_000])):
        (folder / name).write_text(" ".join(part))
    return folder


@pytest.fixture(scope="module")
def machines(folder):
    env = {
        "PYTHONPATH": str(EXAMPLES.parent),
        "W2V_CACHE": str(folder / "cache"),
        "HOROVOD_CYCLE_TIME": "5",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # there are more ranks than cores
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    with skipped_without_hosts(), hosts(2, env=env) as found:
        yield found


@pytest.fixture(scope="module")
def slurm(machines):
    with skipped_without_hosts(), machines.slurm() as slurm:
        yield slurm


def line(out, *options):
    return ["one.txt", "two.txt", "--out", out, "--json", f"{out}.json", *SMALL, *options]


def vectors(folder, out, hosts_of_ranks):
    done = json.loads((folder / f"{out}.json").read_text())
    assert done["hosts"] == hosts_of_ranks
    return load_vectors(folder / out).vectors


FOUR = ["host0", "host0", "host1", "host1"]
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lan0"]
MPI = ["mpirun", "--prefix", sys.prefix, "--bind-to", "none", "-np", "4", "-H", "host0:2,host1:2", *TCP]
GLOO = ["horovodrun", "--gloo", "--network-interfaces", "lan0", "-np", "2", "-H", "host0:1,host1:1"]
PYTHON = [sys.executable, PROGRAM]


def submit(slurm, folder, script, *options):
    """sbatch a script of examples/: the number of the job."""
    env = {"PYTHON": sys.executable, "PROGRAM": str(PROGRAM), "LAN": "lan0", "CHECKPOINT": f"of {script}"}
    batch = ["sbatch", "--parsable", f"--output={script}.log", EXAMPLES / script, *line(f"{script}.txt", *options)]
    job = slurm.run(batch, env=env, cwd=folder).stdout.strip()
    assert job.isdigit(), job
    return job


@pytest.fixture(scope="module")
def by_mpi(machines, folder):
    """The vectors of four ranks that mpirun has started."""
    ended = machines.run(0, [*MPI, *PYTHON, *line("mpirun.txt")], cwd=folder, timeout=250)
    assert ended.returncode == 0, ended.stdout[-3000:]
    return vectors(folder, "mpirun.txt", FOUR)


SRUN = pytest.mark.skipif(not PMIX, reason="Slurm's plug-in for PMIx finds no libpmix.so: install libpmix-dev")


@pytest.mark.parametrize(
    ("script", "to_whom", "tolerance"),
    [
        pytest.param("word2vec.slurm", [], 0, marks=SRUN),  # to the ranks, and the same MPI
        ("word2vec_ssh.slurm", ["--batch"], 1e-3),  # to the script; Gloo adds in another order
    ],
)
def test_a_job_stopped_by_a_signal_goes_on_when_it_is_back(slurm, folder, by_mpi, script, to_whom, tolerance):
    """As before a time limit."""
    job = submit(slurm, folder, script, "--minutes", "0")
    wait_for(lambda: (folder / f"of {script}" / "checkpoint.json").exists(), 250, every=0.05)
    slurm.run(["scancel", *to_whom, "--signal=USR1", job])
    wait_for(lambda: (folder / f"{script}.txt.json").exists(), 250)
    np.testing.assert_allclose(vectors(folder, f"{script}.txt", FOUR), by_mpi, rtol=0, atol=tolerance)
    said = (folder / f"{script}.log").read_text()
    assert f"intervals: the same line goes on from of {script}" in said and "Sorry" not in said
    assert json.loads((folder / f"{script}.txt.json").read_text())["first"] > 0


def on_host1(process):
    """Whether it is an elastic rank of the program on host1."""
    command = command_of(process)
    is_elastic = command[1:2] == [str(PROGRAM)] and "--elastic" in command
    return is_elastic and environment_of(process).get("HOROVOD_HOSTNAME") == "host1"


def test_elastic_ranks_go_on_when_one_is_killed_and_take_it_back(machines, folder):
    log, script = folder / "elastic.log", folder / "hosts.sh"
    script.write_text("#!/bin/sh\necho host0:1\necho host1:1\n")
    script.chmod(0o755)
    elastic = [*GLOO[:6], "--min-np", "1", "--host-discovery-script", script, "--blacklist-cooldown-range", "1", "3"]
    kept = line("elastic.txt", "--elastic", "--checkpoint", "elastic", "--epochs", "1000000")
    with open(log, "w") as file:
        said = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
        process = machines.start(0, [*elastic, *PYTHON, *kept], cwd=folder, **said)

    def starts():
        """[(ranks, the interval they begin with), ...]"""
        assert process.poll() is None, log.read_text()
        found = re.findall(r"ranks: (\d), from interval (\d+) of", log.read_text())
        return [(int(ranks), int(first)) for ranks, first in found]

    wait_for(lambda: len(starts()) == 1, 250)
    [rank] = [p for p in psutil.process_iter() if on_host1(p)]
    rank.kill()
    wait_for(lambda: len(starts()) == 3, 250)
    (folder / "elastic" / "stop").touch()
    (both, zero), (one, first), (again, later) = starts()
    assert (both, one, again) == (2, 1, 2)
    assert zero == 0 <= first < later
    assert process.wait(250)
    assert "the same line goes on from elastic" in log.read_text()
    assert json.loads((folder / "elastic" / "checkpoint.json").read_text())["step"] > later


def test_a_host_is_lost_and_the_rest_goes_on_from_the_checkpoint(machines, folder):
    # ten epochs are over in a third of a second, which a busy machine overlooks
    kept = line("lost.txt", "--checkpoint", "kept", "--minutes", "0", "--epochs", "200")
    env = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "5"}
    with open(folder / "lost.log", "w") as log:
        said = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        process = machines.start(0, [*GLOO, *PYTHON, *kept], env=env, cwd=folder, **said)
    wait_for(lambda: (folder / "kept" / "checkpoint.json").exists() or process.poll() is not None, 250, every=0.05)
    assert process.poll() is None, (folder / "lost.log").read_text()
    machines.lose(1)
    assert process.wait(250)
    assert "word2vec.py: another rank or its host was lost" in (folder / "lost.log").read_text()
    ended = machines.run(0, [*PYTHON, *kept], cwd=folder, timeout=250)  # one process
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert len(vectors(folder, "lost.txt", ["host0"])) > 1_000
    assert json.loads((folder / "lost.txt.json").read_text())["first"] > 0
    assert list((folder / "kept").iterdir()) == []
