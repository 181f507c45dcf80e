"""New Linux namespaces, their first process, and what it takes to run a command inside of them."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
SCRIPT = Path(__file__).with_name("namespaces.sh")
OTHERS_ID = ["--preserve-credentials"]  # nsenter would set the user's ids, which a user namespace of one user forbids


class HostsUnavailable(RuntimeError):
    """This machine cannot have hosts, or not this part of them; one sentence says what is missing."""


class Namespaces:
    """A network, host name, mounts and processes of their own.

    They end with this process, however it ends: their first process lives until a pipe from here closes.

    Parameters
    ----------
    *arguments : str or Path
        Of namespaces.sh: a role, a folder, and what this role needs.
    cores : str
        The cores of all processes in them, as `taskset -c` wants them.
    owner : Namespaces, optional
        Whose user namespace owns these. An ordinary user's first namespaces come with a user namespace, in which he is
        root; root needs none.

    Raises
    ------
    HostsUnavailable
        If the kernel does not allow it.
    """

    def __init__(self, *arguments, cores, owner=None):
        unshare = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._owner = owner or self
        rights = []
        if os.geteuid() and owner:
            rights = owner.rights()
        elif os.geteuid():
            unshare += ["--user", "--map-root-user"]
        self._process = subprocess.Popen(
            [*rights, "taskset", "-c", cores, *unshare, "sh", SCRIPT, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": PATH},
            start_new_session=True,
            text=True,
        )
        if self._process.stdout.readline() != "ready\n":
            complaint = " ".join(self._process.communicate()[1].split())
            raise HostsUnavailable(no_namespaces(complaint))
        self.first = psutil.Process(self._process.pid).children()[0]

    def rights(self):
        """The beginning of a command that has all rights over these namespaces; of root's: nothing."""
        if os.geteuid() == 0:
            return []
        return ["nsenter", "-t", str(self._owner.first.pid), "--user", *OTHERS_ID]

    def enter(self):
        """The beginning of a command that is to run inside, as the user that one is."""
        enter = ["nsenter", "-t", str(self.first.pid), "--mount", "--uts", "--net", "--pid"]
        if os.geteuid():
            enter += ["--user", *OTHERS_ID]
        return [*self.rights(), *enter]

    def call(self, *command):
        """Run a command with all rights in this network; see `call`."""
        return call(*self.rights(), "nsenter", "-t", self.first.pid, "--net", *command)

    def tell(self, line):
        """Write a line to the first process."""
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def alive(self):
        """Whether its first process is there."""
        return self._process.poll() is None

    def kill(self):
        """Kill everything inside, and wait until it has ended."""
        if self.alive():
            self.first.kill()
        self._process.communicate()

    def close(self):
        """Let the first process end by itself, and wait until it has."""
        self._process.communicate()


def call(*command):
    """What a command says.

    Raises
    ------
    HostsUnavailable
        With its complaint, if it fails.
    """
    command = [str(word) for word in command]
    done = subprocess.run(command, env={**os.environ, "PATH": PATH}, capture_output=True, text=True)
    if done.returncode:
        raise HostsUnavailable(f"`{' '.join(command)}` is not possible here: {done.stderr.strip()}")
    return done.stdout


def no_namespaces(complaint):
    """The sentence for a machine on which unshare failed with this complaint."""
    if os.geteuid() == 0:
        elsewhere = "use a virtual machine or a privileged container"
        return f"this machine does not allow new namespaces ({complaint}): {elsewhere}"
    return (
        f"hosts of an ordinary user need user namespaces, which this machine does not allow ({complaint}): "
        "allow them (sysctl user.max_user_namespaces, on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0) "
        "or start this program as root"
    )


def kill_family(process):
    """Kill what a subprocess.Popen of `Hosts.start` has started, and wait until it has ended.

    nsenter, the process itself, ends with its child, which it collects: killed together with it, the child would stay
    a zombie for as long as the first process of this machine likes.
    """
    while process.poll() is None:
        nsenter = psutil.Process(process.pid)
        for member in nsenter.children(recursive=True) or [nsenter]:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        time.sleep(0.01)
