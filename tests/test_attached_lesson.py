"""Lesson 00 on an `ipcluster` that somebody else started: its saved outputs hold there too.

The one with MPI has, as conda-forge, a Horovod without Gloo: it says so of itself and refuses to use Gloo.
"""

import os
import shutil
import subprocess
import sys

import pytest
from clusters import Cluster
from programs import ROOT, said_by

pytestmark = [pytest.mark.ranks, pytest.mark.slow]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", "--nbval-kernel-startup-timeout=300"]
CONNECT = "from helpers.cluster import connect; ranks = connect"
# every Python that finds this file first imports it when it starts: kernels, engines and their children
NO_GLOO = """
import importlib.abc, importlib.util, os, sys

class NoGloo(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "horovod.tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_without_gloo(module):
            load(module)
            init = module.init
            module.gloo_built = lambda verbose=False: False

            def init_by_mpi(*args, **kwargs):
                assert "HOROVOD_GLOO_RENDEZVOUS_ADDR" not in os.environ, "this Horovod has no Gloo"
                return init(*args, **kwargs)

            module.init = init_by_mpi

        spec.loader.exec_module = load_without_gloo
        return spec

sys.meta_path.insert(0, NoGloo())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of lesson 00, and a profile of its own."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]")  # our own conftest would hide the cluster
    return tmp_path


def run_lesson(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NBVAL, "00_start_here.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_lesson_00_runs_attached(folder):
    with Cluster(4):
        run_lesson(folder)
        assert "engines of the running ipcluster" in said_by(f"{CONNECT}(2)")


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
def test_lesson_00_runs_attached_to_engines_of_mpi_without_gloo(folder, monkeypatch):
    (folder / "sitecustomize.py").write_text(NO_GLOO)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    with Cluster(2, "--engines=mpi"):
        run_lesson(folder)
        assert "engines of the running ipcluster" in said_by(f"{CONNECT}(2)")
    assert "started by mpi" in said_by(f"{CONNECT}(2, cluster=False); print('started by', ranks.controller)")
