"""The benchmark of the losses: its parts by hand, and the whole of it on a text so small that it ends in seconds."""

import json
import random
import sys
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import losses as benchmark
from lesson_parts import recorded
from lesson_parts.losses import LOSSES, SAMPLERS, full_softmax

V, DIM, BATCH = 40, 5, 7
RECORDED = Path(benchmark.__file__).parent / "results" / "losses.json"


def test_adagrad_step_is_that_of_numpy():
    rng = np.random.default_rng(0)
    tables = [tf.Variable(rng.normal(size=shape), dtype=tf.float32) for shape in ([V, DIM], [V, DIM], [V])]
    pairs = [tf.constant(rng.integers(0, V, BATCH), tf.int32) for _ in range(2)]
    with tf.GradientTape() as tape:
        value = full_softmax(tables, *pairs)
    gradients = [BATCH * tf.convert_to_tensor(g).numpy() for g in tape.gradient(value, tables)]
    expected = [t.numpy() - 0.3 * s / np.sqrt(0.1 + s**2) for t, s in zip(tables, gradients, strict=True)]
    step = benchmark.adagrad_step(full_softmax, tables, 0.3)
    assert step(*pairs).numpy() == pytest.approx(value.numpy(), rel=1e-6)
    for table, after in zip(tables, expected, strict=True):
        np.testing.assert_allclose(table, after, atol=1e-5)


def test_a_race_looks_at_all_after_each_share_of_the_time_and_takes_turns():
    class Runner:
        def __init__(self):
            self.until = 0

        def go(self, until):
            visits.append((self, until))
            self.until = until

        def row(self):
            return {"seconds": self.until}

    visits, runners = [], [Runner(), Runner()]
    rows = benchmark.race("test", runners, 2.0)
    assert [row["seconds"] for row in rows] == 2 * [share * 2.0 for share in benchmark.LOOKS]
    assert [runner for runner, _ in visits] == runners * (len(visits) // 2)
    times = [until for _, until in visits[::2]]
    assert max(np.diff([0, *times])) <= benchmark.TURN


def test_the_best_rate_has_the_highest_score_at_the_last_look():
    scores = {0.03: (0.1, 0.7), 0.1: (0.5, 0.8), 0.3: (0.9, 0.6)}
    rows = [{"loss": "nce", "lr": lr, "twins": score} for lr, both in scores.items() for score in both]
    assert benchmark.best_rate([*rows, {"loss": "sgns", "lr": 0.3, "twins": 9}], "nce") == 0.1


def test_plurals_by_hand():
    words = ["file", "files", "array", "arrays", "UNK"]
    shifted = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1], [-1, -1, 0.5]])
    assert benchmark.plural_accuracy(shifted, words) == 1
    assert benchmark.plural_accuracy(shifted[[0, 4, 2, 1, 3]], words) == 0
    assert benchmark.plural_accuracy(shifted, ["a", "b", "c", "d", "e"]) == 0


def run(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", ["losses", *arguments.split()])
    benchmark.main()


@pytest.fixture
def uncompiled():
    """Steps as they are: each of the some 70 trainings would compile its own."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.slow
def test_the_whole_program_on_a_tiny_text(tmp_path, monkeypatch, capsys, uncompiled):
    draw = random.Random(0)
    words = [f"w{draw.choice('abcdefgh')}{draw.choice('abcdefghij')}" for _ in range(4000)]
    (tmp_path / "tiny.txt").write_text(" ".join(words))
    monkeypatch.setattr(benchmark, "SWEEPS", {"lr": (0.1, 1.0)})
    monkeypatch.setattr(benchmark, "RATES", (0.1,))
    monkeypatch.setattr(benchmark, "cost_once", partial(benchmark.cost_once, turns=1))
    threads = SimpleNamespace(Pool=lambda size, maxtasksperchild: ThreadPool(size))  # processes would take seconds
    monkeypatch.setattr(benchmark.multiprocessing, "get_context", lambda kind: threads)
    sizes = "--vocabulary 80 --small-vocabulary 70 --pairs 2048 --same-pairs 2048 --sizes 100"
    files = f"--corpus {tmp_path}/tiny.txt --json {tmp_path}/out.json"
    run(monkeypatch, f"{files} {sizes} --seeds 1 --seconds 0.05 --sampler unigram")
    found = json.loads((tmp_path / "out.json").read_text())
    assert set(found) == {"settings", *benchmark.TABLES}
    assert {row["loss"] for row in found["cost"]} == set(LOSSES)
    assert {found["settings"][plan]["sampler"] for plan in ("race", "race_planted")} == {"unigram"}
    assert {row["sampler"] for row in found["samplers"]} == set(SAMPLERS)
    assert {row["loss"] for row in found["memory"]} == set(benchmark.MEMORY_LOSSES)
    assert [row["value"] for row in found["sweeps"]] == [0.1, 1.0]
    tuned = {(row["loss"], row["lr"]) for row in found["rates"] if row["part"] == "tuning"}
    assert tuned == {(loss, lr) for loss in LOSSES for lr in benchmark.RATES}
    assert {row["seed"] for row in found["rates"] if row["part"] == "race"} == {0}
    planted = [row for table in ("rates", "quality") for row in found[table] if row["corpus"] == "planted"]
    assert all(np.isfinite(row["twins"]) for row in planted)
    assert "Settings:" in capsys.readouterr().out


def test_a_table_measured_anew_leaves_the_others(tmp_path, monkeypatch):
    out = tmp_path / "out.json"
    out.write_text(json.dumps({"settings": {}, "cost": ["old"], "machine": ["old"]}))
    run(monkeypatch, f"--corpus planted --vocabulary 600 --small-vocabulary 600 --tables machine --json {out}")
    found = json.loads(out.read_text())
    assert found["cost"] == ["old"] and found["machine"][0]["gflops"] > 0


def test_a_corpus_that_is_not_there_is_one_sentence(monkeypatch):
    with pytest.raises(SystemExit, match="^There is no file /nowhere.txt"):
        run(monkeypatch, "--corpus /nowhere.txt")


# ---- What lesson 06 reads of it


def test_crossover_of_two_straight_lines_on_logarithmic_scales():
    assert recorded.crossover([10, 1000], [1, 100], [10, 10]) == pytest.approx(100)
    assert recorded.crossover([10, 100, 1000], [1, 10, 100], [2, 5, 5]) == pytest.approx(10 * 10**0.5)
    assert recorded.crossover([5, 10, 1000], [9, 1, 100], [8, 10, 10]) == pytest.approx(100)  # the last change counts
    with pytest.raises(ValueError, match="smaller"):
        recorded.crossover([10, 100], [2, 3], [1, 1])
    with pytest.raises(ValueError, match="larger"):
        recorded.crossover([10, 100], [1, 2], [3, 3])


def test_recorded_times_are_taken_from_their_rows():
    cost = [
        ("full_softmax", 64, 10, [1.0, 2.0]),
        ("full_softmax", 64, 20, [6.0, 8.0]),
        ("sampled_softmax", 64, 20, [3.0, 2.0]),
        ("sampled_softmax", 8, 10, [5.0, 5.0]),
    ]
    cost = [dict(zip(("loss", "num_sampled", "vocabulary", "runs"), row, strict=True)) for row in cost]
    found = recorded.full_beside_sampled({"cost": cost}, 64, "sampled_softmax")
    assert [part.tolist() for part in found] == [[20], [[6], [8]], [[3], [2]]]
    assert recorded.times_as_long({"cost": cost}, 20, "sampled_softmax") == pytest.approx([2, 4])
    cost += [{**row, "loss": "nce", "runs": [2.0, 1.0]} for row in cost if row["loss"] == "sampled_softmax"]
    assert recorded.times_as_long({"cost": cost}, 20, "nce") == pytest.approx([3, 8])


@pytest.mark.parametrize("number, text", [(0.794, "0.79"), (14.4, "14"), (984.2, "980"), (1340, "1,300")])
def test_two_digits(number, text):
    assert recorded.two_digits(number) == text


def test_recorded_costs_are_the_medians_of_three_runs():
    for row in json.loads(RECORDED.read_text())["cost"]:
        assert len(row["runs"]) == 3
        assert row["ms"] == sorted(row["runs"])[1]


def test_the_verdict_has_the_readers_rounds():
    bench = json.loads(RECORDED.read_text())
    shown = recorded.verdict_table(bench, {100: [0.8, 1.2, 0.9]}).data
    assert "| 100 | 1.6 | 0.8 to 1.2 |" in shown and "| neither, after 2 s |" in shown
    assert "| 651 | 10.2 | not timed |" in shown and "| NCE, after 8 s |" in shown


def test_the_recorded_race_ended_as_lesson_06_says():
    bench = json.loads(RECORDED.read_text())
    for words, looks in ((651, range(5)), (10_000, [-1])):
        runs = recorded.raced(bench, words)
        for look in looks:
            assert min(runs["nce"].scores[:, look]) > max(runs["full_softmax"].scores[:, look])
    at_100 = recorded.raced(bench, 100)
    nce, full = at_100["nce"].scores[:, -1], at_100["full_softmax"].scores[:, -1]
    assert min(nce) <= max(full) and min(full) <= max(nce)  # neither leads
