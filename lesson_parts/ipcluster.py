"""What lessons 23 and 24 need to start an ipcluster on hosts: a profile for each, and the wait for its engines."""

import os
import shlex
import socket
import sys
import tempfile
import time
from pathlib import Path

from ipyparallel import Client

CONTROLLER = """
c.HeartMonitor.period = 200  # ms; engines join at a second beat
c.HeartMonitor.max_heartmonitor_misses = 150
"""

BY_SSH = """
c.Cluster.engine_launcher_class = "ssh"
c.Cluster.controller_ip = "{address}"
c.SSHLauncher.remote_python = "{python}"
c.SSHEngineSetLauncher.engines = {engines}
"""


def engines_by_ssh(machines):
    """Write the configuration of lesson 23 for an engine on each host, started by ssh.

    Parameters
    ----------
    machines : laptop_cluster.Hosts
        They share their files, so nothing is sent to them.

    Returns
    -------
    str
        The text of an ipcluster_config.py.
    """
    engines = {name: {"n": 1, "to_send": []} for name in machines.names}
    return BY_SSH.format(address=machines.addresses[0], python=sys.executable, engines=engines)


def start_ipcluster(machines, line, config, *, n=2, env=None, timeout=250):
    """Type a line with `ipcluster start` on host0, and wait until its engines answer.

    `connect` of this process finds the cluster: IPYTHONDIR is set to a new folder, whose default profile it has.

    Parameters
    ----------
    machines : laptop_cluster.Hosts
    line : str
        Such as "ipcluster start".
    config : str
        The text of its ipcluster_config.py.
    n : int
        How many engines the line and the configuration start.
    env : dict of str to str, optional
        Added to the environment of ipcluster.
    timeout : float
        Seconds that the engines may take.

    Returns
    -------
    list of str
        The host of each engine, sorted.

    Raises
    ------
    RuntimeError
        With the end of the log, if ipcluster ends, or has no controller in time.
    TimeoutError
        If fewer than n engines are there in time.
    """
    folder = Path(tempfile.mkdtemp(prefix="ipcluster-", dir=machines.folder))
    profile = folder / "profile_default"
    profile.mkdir()
    (profile / "ipcluster_config.py").write_text(config)
    (profile / "ipcontroller_config.py").write_text(CONTROLLER)
    os.environ["IPYTHONDIR"] = str(folder)
    env = {**(env or {}), "IPYTHONDIR": str(folder)}
    log = folder / "log.txt"
    with open(log, "w") as output:
        process = machines.start(0, shlex.split(line), env=env, cwd=folder, stdout=output, stderr=output)
    deadline = time.monotonic() + timeout
    connection = profile / "security" / "ipcontroller-client.json"
    while not (connection.exists() and connection.read_text().rstrip().endswith("}")):  # it may be half written
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"`{line}` starts no controller:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
    with Client(str(connection), timeout=30) as client:
        client.wait_for_engines(n, timeout=timeout, interactive=False)  # no progress bar
        return sorted(client[:].apply_sync(socket.gethostname))
