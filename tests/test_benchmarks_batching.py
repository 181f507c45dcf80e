"""A run of `python -m benchmarks.batching` with tiny sizes."""

import json
import subprocess
import sys

import pytest

SMALL = ["--corpus", "planted", "--words", "20000", "--encode", "100000", "--seconds", "0.05", "--repeats", "1"]


@pytest.mark.slow
def test_the_benchmark_measures_each_way_of_making_pairs_and_saves_it(tmp_path):
    out = tmp_path / "batching.json"
    command = [sys.executable, "-m", "benchmarks.batching", *SMALL, "--json", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    *pairs, encoding = json.loads(out.read_text())
    ways = ["generate_batch/2", "generate_batch/10", "skipgram_pairs", *["pair_batches"] * 3, *["pair_dataset"] * 3]
    assert [row["system"] for row in pairs] == ways
    assert all(row["pairs_per_s"] > 0 and row["corpus"] == "planted" for row in pairs)
    assert encoding["words"] == 100_000 and encoding["seconds"] > 0
    assert all(f"{row['pairs_per_s'] / 1e6:.3f}" in done.stdout for row in pairs)
