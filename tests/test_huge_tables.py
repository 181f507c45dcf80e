"""The meters of lesson 18: ways take turns, and a process gets what it may reserve, and no more."""

import subprocess
import sys

import notebook_rules as rules
import psutil
import pytest

from lesson_parts.huge_tables import perfect_memory, rows_of_servers

PROGRAM = """
import mmap, os
from lesson_parts.huge_tables import allow_more

def reserve(size):
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE).close()
        return "got"
    except OSError as error:
        return "refused"

assert allow_more([os.getpid()], 200e6)
print(reserve(100_000_000), reserve(300_000_000))
assert allow_more([os.getpid()])
print(reserve(300_000_000))
"""


@pytest.mark.skipif(not hasattr(psutil, "RLIMIT_DATA"), reason="this system knows no such limit")
def test_a_process_may_reserve_so_much_and_no_more_until_the_limit_is_lifted():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=rules.ROOT, capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["got refused", "got"], done.stderr


def test_perfect_memory_knows_the_ids_of_earlier_batches_and_half_of_the_others():
    batches = [([0, 1], None), ([1, 2], None)]
    assert perfect_memory(batches.__getitem__, 3, [0, 1]).tolist() == [0.5, 0.75]


def test_a_server_sends_each_different_row_once():
    assert rows_of_servers(lambda number: ([0, 1, 2, 3, 3], None), 8, 2, 3).tolist() == [3, 1]
