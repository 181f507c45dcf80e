"""What ssh between the hosts needs: one key for all, a configuration of the client, and one of each host's server."""

import time
from pathlib import Path

from laptop_cluster.namespaces import HostsUnavailable, call

CLIENT = """IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
StrictHostKeyChecking yes
LogLevel ERROR
"""
SERVER = """ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
Subsystem sftp internal-sftp
SetEnv {variables}
"""
SHADOW = "root:*:19000:0:99999:7:::\nsshd:*:19000::::::\n"  # no password, and not locked: sshd refuses locked accounts


def write_files(folder, table, variables):
    """Write the key and all configurations.

    Parameters
    ----------
    folder : Path
        Where to; all hosts see it.
    table : dict of str to str
        The address of each name.
    variables : dict of str to str
        The environment of what ssh starts.
    """
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / "key")
    key = (folder / "key.pub").read_text()
    known = [f"{name},{address} {key}" for name, address in table.items()]
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text(CLIENT.format(folder=folder))
    (folder / "shadow").write_text(SHADOW)
    settings = " ".join(f'"{name}={value}"' for name, value in variables.items())
    for name, address in table.items():
        server = SERVER.format(address=address, folder=folder, variables=settings)
        (folder / f"{name}.sshd_config").write_text(server)


def wait_for_server(folder, name, seconds=20):
    """Wait until the ssh server of a host listens.

    Raises
    ------
    HostsUnavailable
        With what the server said, if it does not listen in time.
    """
    log = Path(folder, f"{name}.sshd.log")
    deadline = time.monotonic() + seconds
    while not (log.exists() and "Server listening on" in log.read_text()):
        if time.monotonic() > deadline:
            said = log.read_text().strip() if log.exists() else "nothing"
            raise HostsUnavailable(f"the ssh server of {name} does not start, it says: {said}")
        time.sleep(0.02)
