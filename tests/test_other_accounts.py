"""What docs/clusters.md says of other accounts of the same machine: what listens on loopback asks nobody who he is.

The other account is `nobody`: a process of ours that gives its rights away once it has imported what it needs.
"""

import os
import subprocess
import sys

import pytest

from helpers.cluster import connect, start_servers

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another account"
)
NOBODY = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
READ_BY_A_SERVER = f"""
import sys
import tensorflow as tf
{NOBODY}
server, private = sys.argv[1:]
try:
    open(private)
    sys.exit("nobody can open the file by himself")
except PermissionError:
    pass
graph = tf.Graph()
with graph.as_default(), tf.device("/job:ps/task:0"):
    text = tf.io.read_file(private)
with tf.compat.v1.Session(f"grpc://{{server}}", graph=graph) as session:
    print(session.run(text).decode())
"""
WRITE_INTO_THE_RENDEZVOUS = f"""
import encodings.idna
import sys
import urllib.request
{NOBODY}
url = f"http://127.0.0.1:{{sys.argv[1]}}/a_scope/a_key"
urllib.request.urlopen(urllib.request.Request(url, data=b"from nobody", method="PUT"))
print(urllib.request.urlopen(url).read().decode())
"""


def as_nobody(program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.servers
def test_another_account_reads_our_private_file_through_a_parameter_server(tmp_path):
    private = tmp_path / "private"
    private.write_text("a secret of the owner")
    private.chmod(0o600)
    with start_servers(workers=1, ps=1) as cluster:
        assert as_nobody(READ_BY_A_SERVER, cluster.spec["ps"][0], str(private)) == "a secret of the owner"


@pytest.mark.ranks
def test_another_account_writes_into_horovods_rendezvous():
    with connect(2, cluster=False, controller="gloo") as ranks:
        (port, _) = ranks.run(os.getenv, "HOROVOD_GLOO_RENDEZVOUS_PORT")
        assert as_nobody(WRITE_INTO_THE_RENDEZVOUS, port) == "from nobody"
        assert ranks.run(lambda: 1) == [1, 1]
