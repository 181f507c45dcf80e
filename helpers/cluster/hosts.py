"""Several hosts on one Linux machine, made of namespaces, with names, ssh and links whose bandwidth can be set.

    with hosts(2, mbit=1000) as machines:
        machines.run(0, ["ssh", "host1", "hostname"]).stdout      # "host1"
        machines.bandwidth(100)

A host has its own network, host name, table of names, processes, /run and /dev/shm; files are shared, as by NFS. A
switch in a namespace of its own connects the hosts with each other and with this machine, and with nothing else: they
have no route beyond it. The kernel removes a namespace and its links when its last process has ended, and these end
with this process, however it ends: nothing can be left over.
"""

import contextlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from helpers.cluster.reaper import kill, start_child

TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "taskset": "util-linux",
         "sshd": "openssh-server", "ssh-keygen": "openssh-client", "ssh": "openssh-client"}  # fmt: skip
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
SCRIPT = Path(__file__).with_name("host.sh")  # the first process of a host


class HostsUnavailable(RuntimeError):
    """This machine cannot have hosts; one sentence says what is missing."""


def hosts(n=2, mbit=None, *, within="10.77.0.0/16"):
    """n hosts, `host0` and on, on a link of so many Mbit/s to the switch each (None: unlimited): a Hosts.

    within: the first /24 of this range that no route of this machine touches is used. The cores are dealt to the hosts.
    Raises ValueError for bad numbers, HostsUnavailable without root, the tools, or a free range.
    """
    if not 1 <= n <= 200:
        raise ValueError(f"n={n}: 1 to 200 hosts are possible")
    missing = {name: package for name, package in TOOLS.items() if not shutil.which(name, path=PATH)}
    if not sys.platform.startswith("linux") or os.geteuid():
        raise HostsUnavailable(
            "hosts are made of Linux namespaces, and to make them takes root: on your own machine, "
            "start the notebook as root (sudo), or in a virtual machine or privileged container"
        )
    if missing:
        packages = " and ".join(dict.fromkeys(missing.values()))
        raise HostsUnavailable(f"hosts need {', '.join(missing)}: install {packages}")
    return Hosts(n, mbit, ipaddress.ip_network(within))


class Hosts:
    """n hosts; a context manager, made by `hosts`.

    names, addresses: of each host, lists of str. address: of this machine, as the hosts see it. folder: for temporary
    files, of all hosts and this machine; it goes when the hosts go.
    """

    def __init__(self, n, mbit, within):
        self.names = [f"host{i}" for i in range(n)]
        self._inits, self._undo = [], contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-"))
        reaper = start_child("reaper", self.folder)
        self._undo.callback(reaper.communicate)
        try:
            self._switch = self._namespace(reaper, self._cores(0), "switch")
            self._claim(within)
            self._write_tables()
            for i, name in enumerate(self.names):
                self._inits.append(self._namespace(reaper, self._cores(i), self.folder, name, self.addresses[i]))
                self._plug_in(i)
            self.bandwidth(mbit)
            self._wait_for_ssh()
        except BaseException:
            self.close()
            raise

    def start(self, host, command, env=None, **options):
        """Start a command, a list of str, on a host; env: added to the environment. Returns a subprocess.Popen."""
        env = {**os.environ, "PATH": PATH, "TMPDIR": str(self.folder / "tmp"), **(env or {})}
        enter = ["nsenter", "-t", str(self._inits[host].pid), "-m", "-u", "-n", "-p"]
        where = ["taskset", "-c", self._cores(host), "env", "--chdir", str(options.pop("cwd", os.getcwd()))]
        return subprocess.Popen([*enter, *where, *map(str, command)], env=env, start_new_session=True, **options)

    def run(self, host, command, timeout=120, **options):
        """Run a command on a host: a subprocess.CompletedProcess whose stdout has all that it said.

        Raises subprocess.TimeoutExpired; then, and on Ctrl-C, the command is killed.
        """
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        process = self.start(host, command, **output, text=True, **options)
        try:
            said = process.communicate(timeout=timeout)[0]
        finally:
            if process.poll() is None:
                kill([psutil.Process(process.pid)])
                process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, said)

    def bandwidth(self, mbit):
        """From now on each host sends at most so many Mbit/s; None: as fast as the machine can."""
        for init in filter(psutil.Process.is_running, self._inits):
            queue = "pfifo"
            if mbit is not None:
                queue = f"tbf rate {mbit}mbit burst {max(16_000, int(mbit * 250))} latency 50ms"  # bytes, of 2 ms
            _call(["tc", "qdisc", "replace", "dev", "lan0", "root", *queue.split()], init)

    def plug(self, host, up):
        """Pull the cable of a host (up=False), or put it back."""
        _call(["ip", "link", "set", self.names[host], "up" if up else "down"], self._switch)

    def lose(self, host):
        """Switch a host off: its processes are killed, its network is gone."""
        kill([self._inits[host]])

    def close(self):
        """Remove everything. Can be called twice."""
        self._undo.close()
        deadline = time.monotonic() + 10  # the kernel removes a namespace a moment after its last process
        while getattr(self, "_link", "") in psutil.net_if_addrs() and time.monotonic() < deadline:
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _cores(self, host):
        """The cores of this host as taskset wants them: its share, or all where it would get none."""
        cores = sorted(os.sched_getaffinity(0))
        return ",".join(map(str, cores[host :: len(self.names)] or cores))

    def _namespace(self, reaper, cores, *arguments):
        """The psutil.Process of the first process in new namespaces: SCRIPT, until the pipe to it closes."""
        flags = ["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = ["taskset", "-c", cores, "unshare", *flags, "sh", SCRIPT, *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, env={**os.environ, "PATH": PATH}, start_new_session=True, **pipes)
        self._undo.callback(process.communicate)
        self._undo.callback(process.kill)  # --kill-child: and all that it has
        print(process.pid, file=reaper.stdin, flush=True)
        if process.stdout.readline() != b"ready\n":
            raise HostsUnavailable(f"this machine does not allow new namespaces: {process.stderr.read().decode()}")
        init = psutil.Process(process.pid).children()[0]
        init.pipe = process.stdin
        return init

    def _claim(self, within):
        """A link to the switch under a name that nobody has, with the first address of a range that nobody uses."""
        routes = json.loads(_call(["ip", "-j", "-4", "route", "show", "table", "all"]))
        taken = [ipaddress.ip_network(route["dst"]) for route in routes if route["dst"] != "default"]
        for number, network in enumerate(within.subnets(new_prefix=24)):
            peer = ["type", "veth", "peer", "name", "machine", "netns", str(self._switch.pid)]
            if any(map(network.overlaps, taken)):
                continue
            try:
                _call(["ip", "link", "add", f"w2v{number}", *peer])
            except HostsUnavailable:  # another one has just taken it
                continue
            self._link, addresses = f"w2v{number}", [str(address) for address in network.hosts()]
            self.address, self.addresses = addresses[0], addresses[10 : 10 + len(self.names)]
            _call(["ip", "address", "add", f"{self.address}/24", "dev", self._link])
            _call(["ip", "link", "set", self._link, "up"])
            _call(["ip", "link", "set", "machine", "master", "switch", "up"], self._switch)
            return
        raise HostsUnavailable(f"no /24 of {within} is free: give hosts(within=...) a range that nobody uses")

    def _write_tables(self):
        """The table of names and the keys, for all hosts."""
        (self.folder / "tmp").mkdir()
        _call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.folder / "key")])
        key = (self.folder / "key.pub").read_text()
        rows = [*zip(self.addresses, self.names, strict=True), (self.address, "machine")]
        names = "".join(f"{address} {name}\n" for address, name in rows)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (self.folder / "known_hosts").write_text("".join(f"{name},{address} {key}" for address, name in rows))

    def _plug_in(self, i):
        name, init = self.names[i], self._inits[i]
        _call(["ip", "link", "add", name, "type", "veth", "peer", "name", "lan0", "netns", str(init.pid)], self._switch)
        _call(["ip", "link", "set", name, "master", "switch", "up"], self._switch)
        _call(["ip", "address", "add", f"{self.addresses[i]}/24", "dev", "lan0"], init)
        _call(["ip", "link", "set", "lan0", "up"], init)
        init.pipe.write(b"\n")
        init.pipe.flush()

    def _wait_for_ssh(self, seconds=20):
        deadline = time.monotonic() + seconds
        for name, address in zip(self.names, self.addresses, strict=True):
            while True:
                try:
                    socket.create_connection((address, 22), 1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise HostsUnavailable(f"sshd on {name}: {(self.folder / f'{name}.log').read_text()}") from None
                    time.sleep(0.02)


def _call(command, init=None):
    """What a command says, run in the network of this first process, or here. HostsUnavailable with its complaint."""
    enter = ["nsenter", "-t", str(init.pid), "-n"] if init else []
    done = subprocess.run([*enter, *command], env={**os.environ, "PATH": PATH}, capture_output=True, text=True)
    if done.returncode:
        raise HostsUnavailable(f"`{' '.join(command)}` is not possible here: {done.stderr.strip()}")
    return done.stdout
