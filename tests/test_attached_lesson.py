"""Lesson 00 on an `ipcluster` that somebody else started: its saved outputs hold there too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import Cluster

ROOT = Path(__file__).resolve().parent.parent
MPI = pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", "--nbval-kernel-startup-timeout=300"]


@pytest.mark.ranks
@pytest.mark.slow
@pytest.mark.parametrize("options", [["4"], pytest.param(["2", "--engines=mpi"], marks=MPI)], ids=" ".join)
def test_lesson_00_runs_attached(options, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    n, *engines = options
    shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]")  # our own conftest would hide the cluster
    with Cluster(int(n), *engines):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NBVAL, "00_start_here.ipynb"]
        done = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:]
        check = "from helpers.cluster import connect; print(connect(2).controller)"
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert "engines of the running ipcluster" in done.stdout, done.stdout
