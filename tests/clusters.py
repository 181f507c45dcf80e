"""A real `ipcluster start` for tests of `connect` and JupyterLab, a setting for ranks that often wait, a skip."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import ipyparallel as ipp
import pytest
from waiting import wait_for

from helpers.cluster.engines import CONTROLLER
from helpers.cluster.environment import OF_MPI
from laptop_cluster import HostsUnavailable

SELDOM = {"HOROVOD_CYCLE_TIME": "5"}  # ms, for ranks of a whole file of tests: they ask each other less often for work


@contextmanager
def skipped_without_hosts():
    """Within it, what a machine cannot have of hosts (or of Slurm on them) skips the test."""
    try:
        yield
    except HostsUnavailable as error:
        pytest.skip(str(error))


class Cluster:
    """n engines under the profile of this test session. process: the `ipcluster`. pids: of the engines."""

    file = property(lambda self: Path(os.environ["IPYTHONDIR"], "profile_default/security/ipcontroller-client.json"))

    def __init__(self, n, *options):
        self.n = n
        settings = self.file.parent.with_name("ipcontroller_config.py")
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("".join(f"c.{option.removeprefix('--')}\n" for option in CONTROLLER))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ipyparallel.cluster", "start", "-n", str(n), *options],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **OF_MPI},
        )

    def __enter__(self):
        try:
            wait_for(lambda: self.file.exists() or self.process.poll() is not None)
            assert self.process.poll() is None, "ipcluster ended"
            with ipp.Client(str(self.file), timeout=20) as client:
                client.wait_for_engines(timeout=60, n=self.n, interactive=False)
                self.pids = client[:].apply_sync(os.getpid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
