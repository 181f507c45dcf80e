"""What the benchmarks on the hosts of laptop_cluster share: links, engines by ssh, servers, a line of results."""

import contextlib
import json
import os
import subprocess
import sys
import time
from statistics import median

import ipyparallel as ipp

ENVIRONMENT = {  # of all that runs on the hosts, also of what ssh starts
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
}
LINKS = 10, 100, 1000, None  # Mbit/s


def add_links(parser):
    """The option --links: Mbit/s, or None for unlimited."""
    parser.add_argument("--links", nargs="+", type=lambda x: None if x == "unlimited" else float(x), default=LINKS)


def place_of(row):
    """The strategy and the link of a row of results, in columns."""
    link = "unlimited" if row["mbit"] is None else f"{row['mbit']:,} Mbit/s"
    return f"{row['strategy']:26}{link:>14}"


def gain_of(row):
    """The speed-up of a row of results over one host, beside the predicted one."""
    return f"{median(row['speeds']) / row['one']:8.2f} x, predicted {row['predicted'] / row['one']:.2f} x"


def start_server(machines, host, spec, role, index):
    """Start a worker or parameter server of TensorFlow on a host, for whoever attaches to `spec`."""
    task = {"cluster": spec, "task": {"type": role, "index": index}}
    command = [sys.executable, "-m", "helpers.cluster.parameter_servers", role]
    quiet = subprocess.DEVNULL
    return machines.start(host, command, env={"TF_CONFIG": json.dumps(task)}, stdin=quiet, stdout=quiet, stderr=quiet)


@contextlib.contextmanager
def ssh_engines(machines):
    """`connect` finds an `ipcluster` on host0 with an engine on each host, by ssh. It lives as long as the hosts."""
    before, folder = os.environ.get("IPYTHONDIR"), machines.folder / "ipython"
    os.environ["IPYTHONDIR"] = str(folder)
    profile = folder / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipcluster_config.py").write_text(
        f"c.Cluster.engine_launcher_class = 'ssh'\n"
        f"c.Cluster.controller_ip = {machines.addresses[0]!r}\n"
        f"c.SSHLauncher.remote_python = {sys.executable!r}\n"
        f"c.SSHEngineSetLauncher.engines = {({name: {'n': 1, 'to_send': []} for name in machines.names})}\n"
    )
    try:
        with open(machines.folder / "ipcluster.log", "w") as log:
            machines.start(0, ["ipcluster", "start"], stdout=log, stderr=log)
        wait_for_engines(profile / "security" / "ipcontroller-client.json", len(machines.names))
        yield
    finally:
        os.environ.pop("IPYTHONDIR")
        if before is not None:
            os.environ["IPYTHONDIR"] = before


def wait_for_engines(connection_file, n, seconds=120):
    deadline = time.monotonic() + seconds
    while not connection_file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    with ipp.Client(str(connection_file), timeout=30) as client:
        client.wait_for_engines(n, timeout=seconds)
