"""Several hosts on one Linux machine, made of namespaces, with names, ssh and links whose bandwidth can be set."""

import contextlib
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from laptop_cluster.namespaces import PATH, HostsUnavailable, Namespaces, kill_family
from laptop_cluster.network import Network, limit
from laptop_cluster.slurm import Slurm
from laptop_cluster.ssh import wait_for_server, write_files

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "taskset": "util-linux",
    "hostname": "hostname",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "ssh": "openssh-client",
}


def hosts(n=2, mbit=None, *, within="10.77.0.0/16", env=None):
    """Start n hosts on this machine.

    Parameters
    ----------
    n : int
        1 to 200. They are called `host0` and on, and share the cores of this machine among them.
    mbit : float, optional
        Of the link of each host, in Mbit/s; None: as fast as the machine can.
    within : str
        A range of addresses. The hosts get the first /24 of it that no route of this machine touches.
    env : dict of str to str, optional
        Added to the environment of all that runs on the hosts, also of what ssh starts.

    Returns
    -------
    Hosts
        A context manager.

    Raises
    ------
    ValueError
        For bad numbers.
    HostsUnavailable
        If this machine lacks the system, the rights, a program or a free range.

    Examples
    --------
    >>> with hosts(2, mbit=1000) as machines:
    ...     machines.run(0, ["ssh", "host1", "hostname"]).stdout.split()
    ['host1']
    """
    if not 1 <= n <= 200:
        raise ValueError(f"n={n}: 1 to 200 hosts are possible")
    if not sys.platform.startswith("linux"):
        raise HostsUnavailable("hosts are made of Linux namespaces: use Linux, also in a virtual machine")
    missing = [name for name in PACKAGES if not shutil.which(name, path=PATH)]
    if missing:
        packages = dict.fromkeys(PACKAGES[name] for name in missing)
        raise HostsUnavailable(f"hosts need {', '.join(missing)}: install {' and '.join(packages)}")
    return Hosts(n, mbit, ipaddress.ip_network(within), dict(env or {}))


class Hosts:
    """n hosts; a context manager, made by `hosts`.

    A host has its own network, host name, table of names, processes, /run and /dev/shm; all other files are those of
    this machine, as by NFS. The hosts have no route beyond the switch that connects them.

    Attributes
    ----------
    names, addresses : list of str
        Of each host.
    folder : Path
        For temporary files, seen by all hosts and this machine; it goes when the hosts go.
    """

    def __init__(self, n, mbit, within, env):
        self.names = [f"host{i}" for i in range(n)]
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-"))
        self._env = {"PATH": PATH, "TMPDIR": str(self.folder / "tmp"), **env}
        self._hosts, self._network = [], None
        self._undo = contextlib.ExitStack()
        self._undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._undo.callback(self._wait_for_kernel)
        try:
            self._start(mbit, within)
        except BaseException:
            self.close()
            raise

    def _start(self, mbit, within):
        (self.folder / "tmp").mkdir()
        switch = Namespaces("switch", self.folder, cores=self._cores(0))
        self._undo.callback(switch.close)
        self._network = Network(switch, within, len(self.names))
        self.addresses = self._network.addresses
        self._write_tables()
        ids = [str(os.geteuid()), str(os.getegid())]
        for i, name in enumerate(self.names):
            host = Namespaces("host", self.folder, name, *ids, cores=self._cores(i), owner=switch)
            self._undo.callback(host.kill)
            self._hosts.append(host)
            self._network.connect(i, name, host)
            host.tell("its network is there")
        self.bandwidth(mbit)
        for name in self.names:
            wait_for_server(self.folder, name)

    @property
    def address(self):
        """This machine's address in the network of the hosts, a str.

        Raises
        ------
        HostsUnavailable
            If an ordinary user made the hosts: then this machine is not in their network.
        """
        if self._network.machine is None:
            raise HostsUnavailable(
                "this machine is not in the network of these hosts: to link it to them takes root, so start this "
                "program as root, or run on a host what has to reach them"
            )
        return self._network.machine

    def start(self, host, command, env=None, **options):
        """Start a command on a host.

        Parameters
        ----------
        host : int
        command : list of str or Path
        env : dict of str to str, optional
            Added to the environment.
        **options
            Of subprocess.Popen.

        Returns
        -------
        subprocess.Popen

        Raises
        ------
        HostsUnavailable
            If the host is switched off.
        """
        if not self._hosts[host].alive():
            raise HostsUnavailable(f"{self.names[host]} is switched off")
        env = {**os.environ, **self._env, **(env or {})}
        where = ["taskset", "-c", self._cores(host), "env", "--chdir", str(options.pop("cwd", os.getcwd()))]
        command = [*self._hosts[host].enter(), *where, *map(str, command)]
        return subprocess.Popen(command, env=env, start_new_session=True, **options)

    def run(self, host, command, timeout=120, **options):
        """Run a command on a host to its end.

        Parameters
        ----------
        host, command, **options
            See `start`.
        timeout : float or None
            Seconds. The command is killed with all that it has started when they are over, and on Ctrl-C.

        Returns
        -------
        subprocess.CompletedProcess
            stdout is all that it said, also on its standard error, a str.

        Raises
        ------
        subprocess.TimeoutExpired
        HostsUnavailable
            If the host is switched off.
        """
        process = self.start(
            host,
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        try:
            said = process.communicate(timeout=timeout)[0]
        finally:
            kill_family(process)
            process.stdout.close()
        return subprocess.CompletedProcess(command, process.returncode, said)

    def bandwidth(self, mbit):
        """Limit the links from now on.

        Parameters
        ----------
        mbit : float or None
            What each host sends at most, in Mbit/s; None: as fast as the machine can.
        """
        for host in self._hosts:
            if host.alive():
                limit(host, mbit)

    def plug(self, host, up):
        """Pull the cable of a host, or put it back.

        Parameters
        ----------
        host : int
        up : bool
            False pulls it.
        """
        self._network.plug(self.names[host], up)

    def lose(self, host):
        """Switch a host off: its processes are killed, its network is gone."""
        self._hosts[host].kill()

    def slurm(self, cpus=2):
        """Start Slurm: host0 schedules, each host is a node.

        Parameters
        ----------
        cpus : int
            Tasks that a node takes at a time, whatever cores the host has.

        Returns
        -------
        Slurm
            A context manager.

        Raises
        ------
        HostsUnavailable
            If Slurm is not installed, or does not start.
        """
        slurm = Slurm(self, cpus)
        self._undo.callback(slurm.close)
        return slurm

    def close(self):
        """Remove everything. Can be called twice."""
        self._undo.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _cores(self, host):
        """The cores of a host as taskset wants them: its share, or all where it would get none."""
        cores = sorted(os.sched_getaffinity(0))
        return ",".join(map(str, cores[host :: len(self.names)] or cores))

    def _write_tables(self):
        """The table of names, and what ssh needs."""
        table = dict(zip(self.names, self.addresses, strict=True))
        lines = [f"{address} {name}\n" for name, address in table.items()]
        if self._network.machine:
            lines.append(f"{self._network.machine} machine\n")
        (self.folder / "hosts").write_text("".join(["127.0.0.1 localhost\n", *lines]))
        write_files(self.folder, table, self._env)

    def _wait_for_kernel(self, seconds=10):
        """The kernel removes a namespace with its links a moment after its last process."""
        deadline = time.monotonic() + seconds
        while self._network and not self._network.gone() and time.monotonic() < deadline:
            time.sleep(0.02)
