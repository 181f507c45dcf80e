"""conda-forge's Horovod has MPI and no Gloo: notebooks on a Horovod that says so of itself and refuses to use Gloo."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ["00_start_here", "07_collectives", "09_horovod_word2vec"]
LONG = "MPI_ALONE" in os.environ  # the suite takes the first only: the others cost four minutes
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


@pytest.mark.ranks
@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no mpiexec on this machine")
@pytest.mark.parametrize("name", NOTEBOOKS if LONG else NOTEBOOKS[:1])
def test_a_notebook_runs_on_a_horovod_without_gloo(name, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NO_GLOO)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [sys.executable, ROOT / "tools" / "run_notebooks.py", "--out", tmp_path]
    done = subprocess.run([*command, ROOT / "notebooks" / f"{name}.ipynb"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    said = re.findall(r"ranks ready: (\w+)", (tmp_path / f"{name}.ipynb").read_text())
    assert said and set(said) == {"mpi"}
