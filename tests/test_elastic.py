"""examples.elastic with real Horovod Elastic processes and real deaths; what they train is lesson 22's."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest
from shown import shown

from examples.elastic import ElasticFailure, Job, read_hosts, start_elastic

SHOWN = [
    "from examples.elastic import", "import inspect", "def part_of", "def make_training_step", "class Committed",
    "def train(", "def twenty",
]  # fmt: skip
book = shown("22", *SHOWN)
pytestmark = [pytest.mark.ranks, pytest.mark.slow]
TEXT = np.random.default_rng(0).integers(0, 200, 5_000)
RECIPE = book.Recipe(vocab=200, dim=4, batch=64, negatives=8)
BIASES = np.zeros(200, np.float32)
A, B, C = "localhost:1\n", "127.0.0.1:1\n", "127.0.0.2:1\n"


class SlowlyCommitted(book.Committed):
    """Says when it begins to save, and takes its time, so that it can be killed meanwhile."""

    def save(self):
        book.say(saving=getattr(self, "step", 0))
        time.sleep(0.2)
        super().save()


book.Committed = SlowlyCommitted


class Watched:
    """A job and what one waits for."""

    def __init__(self, folder, hosts):
        self.hosts = folder / "hosts.txt"
        self.hosts.write_text(hosts)
        self.job = start_elastic(book.train, TEXT, RECIPE, BIASES, folder, hosts=self.hosts, cooldown=(1, 2))

    def trains_with(self, size, since, timeout=200):
        """Wait until that many ranks have trained twice after a moment."""
        self.job.wait(lambda: len(self.after(size, since)) >= 2 * size, timeout)
        assert {r["rank"] for r in self.after(size, since)} == set(range(size))

    def after(self, size, since):
        return [r for r in self.job.reports if "loss" in r and r["time"] > since and r["size"] == size]

    def goes_on_without(self, *ranks):
        """Kill all ranks but one: that one trains alone, then all do, and the replicas are equal."""
        hosts, moment = [self.host_of(rank) for rank in ranks], time.time()
        for host in hosts:
            os.kill(self.job.pids[host], signal.SIGKILL)
        for size in (1, 1 + len(ranks)):
            self.trains_with(size, moment)
        assert self.equal()

    def host_of(self, rank):
        return [r["host"] for r in self.job.reports if r.get("rank") == rank][-1]

    def equal(self):
        """Whether the replicas were equal at each start and at the end."""
        prints = {}
        for report in self.job.reports:
            if "equal" in report:
                at = report.get("start", "end"), report["size"]
                prints.setdefault(at, set()).add(report["equal"])
        return {len(each) for each in prints.values()} == {1}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOROVOD_CYCLE_TIME", "5")  # ms: fewer steps in the same time, and fewer lines to read
        watched = Watched(tmp_path_factory.mktemp("elastic"), A + B)
    watched.trains_with(2, 0, timeout=300)
    yield watched
    watched.job.close()


def test_all_that_listens_does_so_on_loopback(watched):
    driver = psutil.Process(watched.job.driver.pid)
    family = [driver, *driver.children(recursive=True)]
    found = [c for process in family for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert {c.laddr.ip for c in found} == {"127.0.0.1"}


def test_a_killed_rank_comes_back_and_the_last_commit_is_restored(watched):
    for rank in (1, 0):
        watched.goes_on_without(rank)
    restored = [r["restored"] for r in watched.job.reports if "restored" in r]
    assert len(restored) == 2 and all(step % book.COMMIT == 0 for step in restored)


def test_a_rank_killed_while_it_commits(watched):
    watched.job.wait(lambda: "saving" in watched.job.reports[-1])
    watched.goes_on_without(1)


def test_a_bad_edit_of_the_host_list_changes_nothing(watched):
    """(Every edit that is bad raises the same error in the driver: see the last test.)"""
    watched.hosts.write_text("nosuchhost.invalid:1\n")
    watched.job.wait(lambda: (watched.job.folder / "driver.log").read_text().count("the host list") > 1, 60)
    watched.trains_with(2, time.time())
    watched.hosts.write_text(A + B)


def test_two_of_three_killed_at_once(watched):
    joins = time.time()
    watched.hosts.write_text(A + B + C)
    watched.trains_with(3, joins)
    watched.goes_on_without(0, 2)


def test_all_killed_is_one_sentence_and_leaves_nothing(watched):
    family = psutil.Process(watched.job.driver.pid).children(recursive=True)
    killed = time.time()
    for pid in watched.job.pids.values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(ElasticFailure, match="the elastic processes ended. Their logs:") as error:
        watched.trains_with(1, killed)
    assert '"exit": -9' in str(error.value)
    _, alive = psutil.wait_procs(family, 200)
    assert not alive and not watched.job.folder.exists()


def test_processes_that_fail_are_no_success_and_end_with_a_driver_that_is_killed(tmp_path):
    (tmp_path / "hosts.txt").write_text(A)
    with start_elastic(os._exit, 3, hosts=tmp_path / "hosts.txt") as job:
        job.wait(lambda: job.driver.poll() is not None, 300)
        assert 3 in [report["exit"] for report in job.reports if "exit" in report]
        assert job.driver.returncode == 1
    with start_elastic(time.sleep, 600, hosts=tmp_path / "hosts.txt") as job:
        job.wait(lambda: job.pids, 300)
        process = psutil.Process(job.pids["localhost"])
        job.driver.kill()
        assert psutil.wait_procs([process], 200)[1] == []


def test_a_process_may_print_what_it_likes(tmp_path):
    job = Job.__new__(Job)
    job.folder, job.reports, job._read_to = tmp_path, [], Counter()
    odd = b"{'a': 1}\n[1]\n5\n\xff\n{\"loss\": 3}\n{\"time\": \"12:00\"}\n"
    (tmp_path / "a.log").write_bytes(odd + b'{"time": 2}\n{"time": 3, "lo')
    (tmp_path / "b.log").write_bytes(b'{"time": 1}\n')
    job._read()
    assert job.reports == [{"time": 1}, {"time": 2}]
    with open(tmp_path / "a.log", "ab") as log:  # the rest of the line that was half printed
        log.write(b'ss": 4}\n')
    for _ in range(2):
        job._read()
        assert job.reports == [{"time": 1}, {"time": 2}, {"time": 3, "loss": 4}]


def only_ask(state, train_one, text, stop):
    """Asks after every twenty steps whether hosts have changed, and never commits."""
    book.say(start=state.step, equal=book.fingerprint(state.variables))
    while not state.stop:
        book.say(**book.twenty_steps(state, train_one, text))
        state.stop = book.hvd.broadcast_object(stop.exists(), root_rank=0)
        state.check_host_updates()


def test_who_joins_or_leaves_between_two_commits_repeats_no_step(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "go_on", only_ask)
    watched = Watched(tmp_path, A)
    watched.trains_with(1, 0, timeout=300)
    for hosts, size in ((A + B, 2), (B, 1)):
        changes = time.time()
        watched.hosts.write_text(hosts)
        watched.trains_with(size, changes)
    (tmp_path / "stop").touch()
    watched.job.wait(lambda: watched.job.driver.poll() is not None)
    watched.job.close()
    reports = watched.job.reports
    starts = [report for report in reports if "start" in report]
    assert [report["size"] for report in starts][:4] == [1, 2, 2, 1]
    for start in starts:
        done = [r["step"] for r in reports if "loss" in r and r["time"] < start["time"]]
        assert start["start"] == max(done, default=0)
    assert watched.job.driver.returncode == 0 and watched.equal()
    assert not [report for report in reports if "restored" in report]


KERNEL = """
import sys
from examples.elastic import start_elastic

def train():
    import time
    print('{"time": 0}', flush=True)
    time.sleep(600)

job = start_elastic(train, hosts=sys.argv[1])
job.wait(lambda: job.pids and len(job.reports) == 2, 300)
print(job.driver.pid, *job.pids.values(), job.folder, flush=True)
job.wait(lambda: False, 600)
"""


def test_nothing_survives_a_killed_kernel(tmp_path):
    (tmp_path / "hosts.txt").write_text(A)
    command = [sys.executable, "-c", KERNEL, tmp_path / "hosts.txt"]
    kernel = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    *pids, folder = kernel.stdout.readline().split()
    family = [psutil.Process(int(pid)) for pid in pids]
    assert len(family) == 2
    family += family[0].children(recursive=True)
    kernel.kill()
    kernel.communicate(timeout=60)
    _, alive = psutil.wait_procs(family, 200)
    assert not alive and not Path(folder).exists()


def test_a_host_list_that_cannot_be_used_is_one_sentence_before_anything_starts(tmp_path):
    path, children = tmp_path / "hosts.txt", psutil.Process().children(recursive=True)
    cases = {
        None: "No such file",
        "": "it is empty, and a line name:slots is needed",
        "localhost:0\n": "it is empty",
        "localhost:1\nnosuchhost.invalid:1\n": "'nosuchhost.invalid:1' is no host of this machine",
        "192.0.2.1:1\n": "'192.0.2.1:1' is no host of this machine: .*Cannot assign",
        "localhost:two\n": "'localhost:two' is .* invalid literal",
        b"\xff\xfe\x00": "can't decode",
    }
    for content, why in cases.items():
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ValueError, match=why) as error:
            start_elastic(print, hosts=path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert psutil.Process().children(recursive=True) == children
    path.write_text(A + B + "127.0.0.2:2\n")
    assert read_hosts(path) == {"localhost": 1, "127.0.0.1": 1, "127.0.0.2": 2}
