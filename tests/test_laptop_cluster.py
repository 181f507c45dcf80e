"""laptop_cluster: what it makes, what is left of it afterwards (nothing), and what it says where it cannot."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from waiting import wait_for

import laptop_cluster
from laptop_cluster import HostsUnavailable, hosts

pytestmark = pytest.mark.hosts
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="this test needs root")


@pytest.fixture(scope="module")
def machines():
    try:
        found = hosts(2, env={"GREETING": "good morning"})
    except HostsUnavailable as error:
        if "install" in str(error) or "unshare failed" in str(error):
            pytest.skip(str(error))
        raise
    with found:
        yield found


def traces(folder, link):
    """What there is of these hosts on this machine: their folder, mounts, link, processes."""
    found = [name for name in (folder, f"/sys/class/net/{link}") if os.path.exists(name)]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if folder in line]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and folder in " ".join(process.cmdline()):
                found.append(process.cmdline())
    return found


def wait_until_nothing_is_left(folder, link):
    wait_for(lambda: not traces(folder, link), every=0.05)


@pytest.mark.parametrize("here", [0, 1])
def test_hosts_have_names_and_reach_each_other_by_ssh(machines, here):
    command = "hostname; getent hosts $(hostname); for h in host0 host1; do ssh $h 'hostname; echo $GREETING'; done"
    said = machines.run(here, ["sh", "-c", command]).stdout.split()
    greeted = ["host0", "good", "morning", "host1", "good", "morning"]
    assert said == [f"host{here}", machines.addresses[here], f"host{here}", *greeted]
    assert machines.run(here, ["printenv", "GREETING"]).stdout == "good morning\n"


def test_nothing_leads_out_of_the_hosts(machines):
    knock = "import socket; socket.create_connection(('192.0.2.1', 9), 5)"
    outside = machines.run(0, [sys.executable, "-c", knock])
    assert outside.returncode and "Network is unreachable" in outside.stdout
    assert " host1\n" not in Path("/etc/hosts").read_text()
    assert socket.gethostname() not in machines.names


def test_the_limit_of_the_links_can_be_changed_while_they_live(machines):
    for mbit, rates in ((8, 1), (None, 0)):
        machines.bandwidth(mbit)
        assert machines.run(1, ["tc", "qdisc"]).stdout.count("rate 8Mbit") == rates


def test_each_host_has_its_share_of_the_cores_and_shares_the_files(machines, tmp_path):
    cores = [machines.run(host, ["sh", "-c", f"nproc; nproc > {tmp_path}/{host}"]).stdout for host in (0, 1)]
    assert [(tmp_path / str(host)).read_text() for host in (0, 1)] == cores
    assert sum(map(int, cores)) == max(2, len(os.sched_getaffinity(0)))


def test_a_command_that_takes_too_long_is_killed_with_its_children(machines):
    with pytest.raises(subprocess.TimeoutExpired):
        machines.run(0, ["sh", "-c", "sleep 54321 & setsid sleep 54321 & sleep 54321"], timeout=0.5)
    assert "54321" not in machines.run(0, ["ps", "ax"]).stdout


def test_two_side_by_side_do_not_meet_and_a_lost_host_takes_only_itself(machines):
    with hosts(2) as others:
        if os.geteuid() == 0:
            assert not {*others.addresses, others.address} & {*machines.addresses, machines.address}
        left_running = others.start(1, ["sleep", "54321"])
        others.lose(1)
        assert left_running.wait(200)
        assert others.run(0, ["ssh", "-o", "ConnectTimeout=2", "host1", "hostname"]).returncode
        assert others.run(0, ["ssh", "host0", "hostname"]).stdout == "host0\n"
        with pytest.raises(HostsUnavailable, match="^host1 is switched off$"):
            others.run(1, ["hostname"])
        others.bandwidth(100)  # of the host that is left
    wait_until_nothing_is_left(str(others.folder), others._network.link)
    assert machines.run(1, ["ssh", "host0", "hostname"]).stdout == "host0\n"


@pytest.mark.skipif(not shutil.which("slurmctld"), reason="Slurm is not installed")
def test_slurm_runs_on_two_hosts_and_leaves_no_job_behind(machines):
    for _ in range(2):
        with machines.slurm() as slurm:
            output = slurm.folder / "output"
            batch = ["sbatch", "--nodes=2", "--ntasks-per-node=2", f"--output={output}"]
            submitted = slurm.run([*batch, "--wrap", "srun hostname; srun sleep 54321"], host=1)
            assert submitted.returncode == 0, submitted.stdout
            slurm._wait(0, ["cat", output], lambda said: said.count("host") == 4)
            assert sorted(output.read_text().split()) == ["host0", "host0", "host1", "host1"]
        for host in (0, 1):
            running = machines.run(host, ["ps", "ax"]).stdout
            assert not [name for name in ("slurm", "munge", "54321") if name in running]


def test_nothing_is_left_after_an_error():
    with pytest.raises(ZeroDivisionError), hosts(2) as found:
        left_running = found.start(0, ["sleep", "54321"])
        raise ZeroDivisionError
    wait_until_nothing_is_left(str(found.folder), found._network.link)
    assert left_running.wait(200)
    found.close()  # a second time


OWNER = """
import json, time
from laptop_cluster import hosts
machines = hosts(2)
machines.start(1, ["sh", "-c", f"sleep 54321; echo {machines.folder}"])
print(json.dumps([str(machines.folder), machines._network.link]), flush=True)
time.sleep(600)
"""


def end_owner(command, how):
    """Start a program that makes hosts, and end it; wait until nothing of them is left."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as owner:
        folder, link = json.loads(owner.stdout.readline())
        assert len(traces(folder, link)) >= 5  # the folder, the first processes, the sleeping one
        owner.send_signal(how)
        owner.wait(200)  # for itself alone: what it has started holds its output, too
        wait_until_nothing_is_left(folder, link)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_process_that_made_them_ends(machines, how):
    end_owner([sys.executable, "-c", OWNER], how)


@pytest.fixture(scope="module")
def learner():
    """A function: the command that runs code as an ordinary user, with the package, and neither helpers nor a venv."""
    interpreter = next(filter(os.path.exists, ("/usr/bin/python3", sys.executable)))
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    for package in laptop_cluster, psutil:
        shutil.copytree(Path(package.__file__).parent, folder / package.__name__)
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + "learner:x:4321:4321::/tmp:/bin/sh\n")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    script = f'mount --bind {folder}/passwd /etc/passwd; cd {folder}; exec "$@"'
    clean = ["env", "-i", "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={folder}"]
    user = ["setpriv", "--reuid=4321", "--regid=4321", "--groups=4321,100"]
    yield lambda code: [*clean, "unshare", "-m", "sh", "-c", script, "sh", *user, interpreter, "-c", code]
    shutil.rmtree(folder)


ORDINARY = """
import os, shutil
from laptop_cluster import HostsUnavailable, hosts
with hosts(2, mbit=50) as machines:
    print(machines.run(0, ["ssh", "host1", "hostname; id -u; tc qdisc | grep -o 'rate .* burst'"]).stdout.split())
    try:
        machines.address
    except HostsUnavailable as error:
        print(error)
    machines.plug(1, up=False)
    print(machines.run(0, ["ssh", "-o", "ConnectTimeout=1", "host1", "hostname"]).returncode)
    machines.plug(1, up=True)
    if shutil.which("slurmctld", path="/usr/sbin"):
        with machines.slurm() as slurm:
            print(sorted(slurm.run(["srun", "-N2", "sh", "-c", "hostname; id -u"]).stdout.split()))
    machines.lose(1)
print(os.path.exists(machines.folder))
"""
UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]


@as_root
def test_an_ordinary_user_has_hosts_links_ssh_and_slurm(learner):
    if subprocess.run(learner(f"import os; os.execvp('unshare', {UNSHARE})")).returncode:
        pytest.skip("an ordinary user may not make user namespaces here")
    done = subprocess.run(learner(ORDINARY), capture_output=True, text=True, timeout=200)
    first, address, *others = done.stdout.splitlines()
    assert first == "['host1', '4321', 'rate', '50Mbit', 'burst']"
    assert address.startswith("this machine is not in the network of these hosts: to link it to them takes root")
    slurm = ["['4321', '4321', 'host0', 'host1']"] if shutil.which("slurmctld") else []
    assert others == ["255", *slurm, "False"], done.stderr
    end_owner(learner(OWNER), signal.SIGKILL)


@as_root
def test_the_sentence_of_a_kernel_without_user_namespaces(learner):
    """In a user namespace that has all ids of this machine, and a limit of no further user namespace."""
    limit = "sh -c 'echo 0 > /proc/sys/user/max_user_namespaces'"
    inside = ["unshare", "--user", "sh", "-c", f'echo; read go; {limit}; exec "$@"', "sh"]
    pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
    process = subprocess.Popen([*inside, *learner("from laptop_cluster import hosts; hosts(1)")], text=True, **pipes)
    if process.stdout.readline() != "\n":
        pytest.skip(process.communicate()[1])
    for ids in ("uid_map", "gid_map"):
        Path(f"/proc/{process.pid}/{ids}").write_text("0 0 65536")
    last = process.communicate("go\n", timeout=200)[1].splitlines()[-1]
    assert "HostsUnavailable: hosts of an ordinary user need user namespaces, which this machine does not allow" in last
    assert last.endswith("or start this program as root")


@as_root
def test_a_range_in_use_is_passed_over_and_a_full_one_named():
    with pytest.raises(HostsUnavailable, match="no /24 of 127.0.0.0/16 is free"):
        hosts(1, within="127.0.0.0/16")  # the loopback's


def test_sentences_without_programs_and_for_bad_numbers(machines, monkeypatch):
    with pytest.raises(ValueError, match="n=0: 1 to 200 hosts"):
        hosts(0)
    monkeypatch.setattr("laptop_cluster.slurm.PATH", "/nowhere")
    with pytest.raises(HostsUnavailable, match="Slurm needs munged, .*: install munge slurmctld slurmd slurm-client$"):
        machines.slurm()
    monkeypatch.setattr(sys.modules[hosts.__module__], "PATH", "/nowhere")
    with pytest.raises(HostsUnavailable, match="need ip, tc, .*sshd.*: install iproute2 and .*openssh-server"):
        hosts(1)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(HostsUnavailable, match="^hosts are made of Linux namespaces: use Linux.*virtual machine$"):
        hosts(1)
