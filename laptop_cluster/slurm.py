"""Slurm on the hosts: munge and slurmd on each, slurmctld on host0."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from laptop_cluster.namespaces import PATH, HostsUnavailable, kill_family

PACKAGES = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
CONFIGURATION = """ClusterName=laptop
SlurmctldHost=host0
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=host[0-{last}] CPUs={cpus}
PartitionName=all Nodes=ALL Default=YES
"""
MUNGE = """mkdir -p /run/munge && exec munged --foreground --force --key-file="$1" \
    --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid --seed-file=/run/munge/seed"""


class Slurm:
    """Slurm on hosts; a context manager, made by `Hosts.slurm`.

    Attributes
    ----------
    env : dict of str to str
        What `srun`, `sbatch` and the other programs of Slurm need in their environment on the hosts.
    folder : Path
        With its configuration and the logs of its daemons.
    """

    def __init__(self, machines, cpus=2):
        missing = [name for name in PACKAGES if not shutil.which(name, path=PATH)]
        if missing:
            raise HostsUnavailable(f"Slurm needs {', '.join(missing)}: install {' '.join(PACKAGES.values())}")
        self._machines = machines
        self._undo = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=machines.folder))
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        user = pwd.getpwuid(os.geteuid()).pw_name
        last = len(machines.names) - 1
        configuration = CONFIGURATION.format(user=user, folder=self.folder, last=last, cpus=cpus)
        (self.folder / "slurm.conf").write_text(configuration)
        (self.folder / "state").mkdir()
        for name in machines.names:
            (self.folder / f"tmp-{name}").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        try:
            for host in range(len(machines.names)):
                self._daemon(host, "munged", ["sh", "-c", MUNGE, "sh", key])
            for host in range(len(machines.names)):
                self._wait(host, ["munge", "-n"], lambda said: said.startswith("MUNGE:"))
            self._daemon(0, "slurmctld", ["slurmctld", "-D"])
            for host in range(len(machines.names)):
                self._daemon(host, "slurmd", ["slurmd", "-D"])
            all_idle = ["idle"] * len(machines.names)
            self._wait(0, ["sinfo", "--noheader", "--Node", "--format=%t"], lambda said: said.split() == all_idle)
            self._undo.callback(self._cancel)
        except BaseException:
            self.close()
            raise

    def run(self, command, host=0, timeout=120, **options):
        """Run a command of Slurm on a host to its end.

        Parameters
        ----------
        command : list of str or Path
            Such as ["srun", "-N2", "hostname"].
        host, timeout, **options
            See `Hosts.run`.

        Returns
        -------
        subprocess.CompletedProcess
        """
        env = {**self.env, **options.pop("env", {})}
        return self._machines.run(host, command, timeout=timeout, env=env, **options)

    def close(self):
        """Cancel all jobs and end the daemons. Can be called twice."""
        self._undo.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _daemon(self, host, name, command):
        with open(self.folder / f"{name}-host{host}.log", "w") as log:
            process = self._machines.start(
                host, command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        self._undo.callback(kill_family, process)

    def _wait(self, host, command, as_wanted, seconds=30):
        """Repeat a command on a host until what it says is as wanted."""
        deadline = time.monotonic() + seconds
        while not as_wanted(said := self.run(command, host).stdout):
            if time.monotonic() > deadline:
                logs = [f"{log.name}: {log.read_text()[-500:]}" for log in sorted(self.folder.glob("*.log"))]
                raise HostsUnavailable(f"Slurm does not start, {command[0]} says {said!r}\n" + "\n".join(logs))
            time.sleep(0.05)

    def _cancel(self):
        with contextlib.suppress(HostsUnavailable):  # host0 may be lost, or the jobs too slow
            self.run(["scancel", "--user", pwd.getpwuid(os.geteuid()).pw_name])
            self._wait(0, ["squeue", "--noheader"], lambda said: not said.strip(), seconds=10)
