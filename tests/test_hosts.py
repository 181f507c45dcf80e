"""helpers.cluster.hosts: what it makes, what is left of it afterwards (nothing), and what it says where it cannot."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from helpers.cluster import HostsUnavailable, hosts

try:
    with hosts(1):
        NEEDS = None
except HostsUnavailable as error:
    NEEDS = str(error)
on_hosts = pytest.mark.skipif(NEEDS is not None, reason=f"{NEEDS}")


def links():
    return {name for name in psutil.net_if_addrs() if name.startswith("w2v")}


def traces(machines):
    """What there is of these hosts on the machine: their link, folder, processes, mounts."""
    found = [name for name in links() if name == machines["link"]]
    found += [machines["folder"]] if os.path.exists(machines["folder"]) else []
    for process in psutil.process_iter():
        try:
            if process.is_running() and process.status() != "zombie" and machines["folder"] in str(process.cmdline()):
                found.append(process.cmdline())
        except psutil.NoSuchProcess:
            pass
    return found + [line for line in Path("/proc/mounts").read_text().splitlines() if machines["folder"] in line]


def described(machines):
    return {"link": machines._link, "folder": str(machines.folder)}


def gone(description, seconds=15):
    deadline = time.monotonic() + seconds
    while (left := traces(description)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.fixture(scope="module")
def machines():
    with hosts(2) as found:
        yield found


@on_hosts
def test_hosts_have_names_and_reach_each_other_by_ssh(machines):
    for here in (0, 1):
        command = "hostname; getent hosts $(hostname); for h in host0 host1; do ssh $h hostname; done"
        said = machines.run(here, ["sh", "-c", command]).stdout.split()
        assert said == [f"host{here}", machines.addresses[here], f"host{here}", "host0", "host1"]
    assert socket.gethostname() not in machines.names


@on_hosts
def test_nothing_leads_out_of_the_hosts_or_into_them(machines):
    routes = machines.run(0, ["ip", "route"]).stdout.splitlines()
    assert [line.split()[0] for line in routes] == [machines.addresses[0].rsplit(".", 1)[0] + ".0/24"]
    outside = machines.run(0, ["python", "-c", "import socket; socket.create_connection(('192.0.2.1', 9), 5)"])
    assert outside.returncode and "Network is unreachable" in outside.stdout
    assert Path("/etc/hosts").read_text().find(" host1\n") == -1
    for init in machines._inits:  # sshd listens on the address of its host alone
        listening = [c.laddr.ip for c in psutil.net_connections() if c.status == "LISTEN" and c.laddr.port == 22]
        assert not set(listening) & set(machines.addresses)
        assert init.is_running()


@on_hosts
def test_bandwidth_can_be_changed_while_they_live(machines):
    def seconds(n_bytes):
        began = time.monotonic()
        assert machines.run(0, ["sh", "-c", f"head -c {n_bytes} /dev/zero | ssh host1 wc -c"]).stdout.strip() == str(
            n_bytes
        )
        return time.monotonic() - began

    machines.bandwidth(8)
    assert seconds(2_000_000) > 1.8  # 1 MB/s, of which the first 16,000 bytes may go at once
    assert "rate 8Mbit" in machines.run(1, ["tc", "qdisc"]).stdout
    machines.bandwidth(None)
    assert "rate" not in machines.run(1, ["tc", "qdisc"]).stdout


@on_hosts
def test_each_host_has_its_share_of_the_cores_and_shares_the_files(machines, tmp_path):
    cores = [machines.run(host, ["sh", "-c", f"nproc; nproc > {tmp_path}/{host}"]).stdout for host in (0, 1)]
    assert [(tmp_path / str(host)).read_text() for host in (0, 1)] == cores
    assert sum(map(int, cores)) == (len(os.sched_getaffinity(0)) if len(os.sched_getaffinity(0)) > 1 else 2)


@on_hosts
def test_a_cable_can_be_pulled_and_put_back(machines):
    ping = "import socket; socket.create_connection(('host1', 22), 1)"
    machines.plug(1, up=False)
    assert machines.run(0, ["python", "-c", ping]).returncode
    machines.plug(1, up=True)
    assert machines.run(0, ["python", "-c", ping.replace(", 1)", ", 20)")]).returncode == 0


@on_hosts
def test_a_command_that_takes_too_long_is_killed_with_its_children(machines):
    with pytest.raises(subprocess.TimeoutExpired):
        machines.run(0, ["sh", "-c", "sleep 54321 & sleep 54321"], timeout=0.5)
    assert "54321" not in machines.run(0, ["ps", "ax"]).stdout


@on_hosts
def test_two_side_by_side_do_not_meet_and_a_lost_host_takes_only_itself(machines):
    with hosts(2) as others:
        assert not set(others.addresses) & set(machines.addresses) and others._link != machines._link
        others.lose(1)
        assert others.run(0, ["hostname"]).stdout == "host0\n"
        assert others.run(0, ["ssh", "-o", "ConnectTimeout=2", "host1", "hostname"]).returncode
        assert machines.run(0, ["ssh", "host1", "hostname"]).stdout == "host1\n"
        others.bandwidth(100)  # of the host that is left
        description = described(others)
    assert not gone(description) and links() >= {machines._link}


@on_hosts
def test_nothing_is_left_after_an_error():
    with pytest.raises(ZeroDivisionError), hosts(2) as found:
        description = described(found)
        left_running = found.start(0, ["sleep", "54321"])
        raise ZeroDivisionError
    assert not gone(description) and left_running.wait(5)
    found.close()  # a second time


OWNER = """
import json, sys, time
from helpers.cluster.hosts import hosts
machines = hosts(2)
machines.start(1, ["sleep", "54321"])
print(json.dumps({"link": machines._link, "folder": str(machines.folder)}), flush=True)
time.sleep(600)
"""


@on_hosts
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_process_that_made_them_ends(how):
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    description = eval(owner.stdout.readline())
    assert traces(description)
    owner.send_signal(how)
    owner.communicate()
    assert not gone(description)


@on_hosts
def test_a_range_in_use_is_passed_over_and_a_full_one_named():
    with pytest.raises(HostsUnavailable, match="no /24 of 127.0.0.0/16 is free"):
        hosts(1, within="127.0.0.0/16")  # the loopback's


def test_sentences_without_rights_or_tools(monkeypatch):
    with pytest.raises(ValueError, match="n=0: 1 to 200 hosts"):
        hosts(0)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostsUnavailable, match="takes root") as error:
        hosts(1)
    assert "\n" not in str(error.value)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys.modules[hosts.__module__], "PATH", "/nowhere")
    with pytest.raises(HostsUnavailable, match="need ip, tc, .*sshd.*: install iproute2 and .*openssh-server"):
        hosts(1)
