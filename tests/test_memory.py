"""The memory of processes is sampled until they, or the watch, end; how much more may be used."""

import subprocess
import sys
import time

from helpers.cluster import processes
from helpers.cluster.processes import MemoryWatch

GROW = "import sys; print(flush=True); input(); block = b'x' * 200_000_000; print(flush=True); input()"


def samples(watch, more=3):
    """Wait until there are so many more samples."""
    due, deadline = len(watch.seconds) + more, time.monotonic() + 10
    while len(watch.seconds) < due and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_process_that_grows_and_ends_is_seen():
    with subprocess.Popen([sys.executable, "-c", GROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        watch = MemoryWatch({"child": child.pid}, every=0.02)
        samples(watch)
        watch.mark("grow")
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        samples(watch)
        child.communicate(b"\n")
    samples(watch)
    watch.stop()
    watch.stop()
    sizes, (grown, text) = watch.sizes["child"], watch.marks[0]
    assert text == "grow" and len(watch.seconds) == len(sizes) > 5
    assert watch.seconds == sorted(watch.seconds) and watch.seconds[2] < grown < watch.seconds[-1]
    assert sizes[-1] == 0, "the child has ended"
    assert 0 < sizes[0] < 100e6 < 200e6 < watch.peak("child") < 400e6


def test_another_process_that_got_the_id_is_not_counted(monkeypatch):
    watch = MemoryWatch({"this": processes.os.getpid()}, every=0.02)
    samples(watch)
    monkeypatch.setattr(processes.psutil.Process, "is_running", lambda process: False)
    samples(watch)
    watch.stop()
    assert watch.sizes["this"][0] > 0 == watch.sizes["this"][-1]


def container(folder, limit, used, cached):
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cached}\nactive_file 9\n")


def test_a_container_limit_counts_where_it_is_lower_than_what_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "CGROUP", tmp_path)
    free = processes.available()
    assert free > 1e6
    container(tmp_path, "max", 2_000_000, 0)
    assert processes.available() > free / 2
    container(tmp_path, 3_000_000, 2_000_000, 0)
    assert processes.available() == 1_000_000


def test_files_that_a_container_has_read_count_as_free(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "CGROUP", tmp_path)
    container(tmp_path, 3_000_000, 2_900_000, 900_000)
    assert processes.available() == 1_000_000
