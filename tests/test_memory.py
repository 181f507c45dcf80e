"""The memory of processes is sampled until they, or the watch, end."""

import subprocess
import sys
import time

from helpers.cluster import processes
from helpers.cluster.processes import MemoryWatch

GROW = "import sys; print(flush=True); input(); block = b'x' * 200_000_000; print(flush=True); input()"


def test_a_process_that_grows_and_ends_is_seen():
    with subprocess.Popen([sys.executable, "-c", GROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        watch = MemoryWatch({"child": child.pid}, every=0.02)
        time.sleep(0.2)
        watch.mark("grow")
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        time.sleep(0.2)
        child.communicate(b"\n")
    time.sleep(0.2)
    watch.stop()
    watch.stop()
    sizes, (grown, text) = watch.sizes["child"], watch.marks[0]
    assert text == "grow" and len(watch.seconds) == len(sizes) > 5
    assert watch.seconds == sorted(watch.seconds) and 0.1 < grown < watch.seconds[-1]
    assert sizes[-1] == 0, "the child has ended"
    assert 0 < sizes[0] < 100e6 < 200e6 < watch.peak("child") < 400e6


def test_a_container_limit_counts_where_it_is_lower_than_what_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "CGROUP", tmp_path)
    free = processes.available()
    assert free > 1e6
    (tmp_path / "processes.current").write_text("2000000\n")
    (tmp_path / "processes.max").write_text("max\n")
    assert processes.available() > free / 2
    (tmp_path / "processes.max").write_text("3000000\n")
    assert processes.available() == 1_000_000
