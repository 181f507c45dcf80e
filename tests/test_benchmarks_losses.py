"""The benchmark of the losses: its parts by hand, and the whole of it on a text so small that it ends in seconds."""

import json
import random
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import losses as benchmark
from helpers.word2vec.losses import LOSSES, SAMPLERS, Samples, full_softmax, sgns
from lesson_parts import recorded

V, DIM, BATCH = 40, 5, 7
COUNTS = np.array([3, *(1000 // np.arange(1, V))])


@pytest.fixture
def toy():
    """Tables, centers, contexts, and samples none of which is a context."""
    rng = np.random.default_rng(0)
    tables = [tf.Variable(rng.normal(size=shape), dtype=tf.float32) for shape in ([V, DIM], [V, DIM], [V])]
    centers, contexts = (tf.constant(rng.integers(0, V // 2, BATCH), tf.int32) for _ in range(2))
    logs = (tf.constant(np.log(rng.uniform(0.05, 1, n)), tf.float32) for n in (12, BATCH))
    return tables, centers, contexts, Samples(tf.range(V // 2, V // 2 + 12), *logs)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_mixed_precision_is_near_and_its_gradients_are_float32(toy, dtype):
    tables, centers, contexts, samples = toy
    with tf.GradientTape() as tape:
        mixed = benchmark.mixed_sgns(tables, centers, contexts, samples, dtype)
    exact = sgns(tables, centers, contexts, samples).numpy()
    assert mixed.dtype == tf.float32
    assert 0 < abs(mixed.numpy() - exact) < 0.02 * exact
    assert {gradient.values.dtype for gradient in tape.gradient(mixed, tables)} == {tf.float32}


@pytest.mark.parametrize("name", LOSSES)
def test_adagrad_step_is_that_of_numpy(toy, name):
    tables, centers, contexts, samples = toy
    rest = () if name == "full_softmax" else (samples,)

    def loss(*arguments):
        return LOSSES[name](*arguments, *rest)

    with tf.GradientTape() as tape:
        value = loss(tables, centers, contexts)
    gradients = [BATCH * tf.convert_to_tensor(g).numpy() for g in tape.gradient(value, tables)]
    expected = [t.numpy() - 0.3 * s / np.sqrt(0.1 + s**2) for t, s in zip(tables, gradients, strict=True)]
    step = benchmark.adagrad_step(loss, tables, 0.3)
    assert step(centers, contexts).numpy() == pytest.approx(value.numpy(), rel=1e-6)
    for table, after in zip(tables, expected, strict=True):
        np.testing.assert_allclose(table, after, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_by_name_learns(toy, name):
    tables, centers, contexts, _ = toy
    step = benchmark.adagrad_step(benchmark.make_loss(name, COUNTS, 12), tables, 0.1)
    before = full_softmax(tables, centers, contexts).numpy()
    for _ in range(30):
        step(centers, contexts)
    assert full_softmax(tables, centers, contexts).numpy() < before - 1


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


@pytest.mark.slow
def test_the_whole_program_on_a_tiny_text(tmp_path, monkeypatch, capsys):
    draw = random.Random(0)
    words = [f"w{draw.choice('abcdefgh')}{draw.choice('abcdefghij')}" for _ in range(4000)]
    (tmp_path / "tiny.txt").write_text(" ".join(words))
    monkeypatch.setattr(benchmark, "SWEEPS", {"lr": (0.1, 1.0)})
    monkeypatch.setattr(benchmark, "RATES", (0.1,))
    threads = SimpleNamespace(Pool=lambda size, maxtasksperchild: ThreadPool(size))  # processes would take seconds
    monkeypatch.setattr(benchmark.multiprocessing, "get_context", lambda kind: threads)
    arguments = f"""--corpus {tmp_path}/tiny.txt --vocabulary 80 --small-vocabulary 70 --seeds 1
        --seconds 0.05 --sampler unigram --pairs 2048 --same-pairs 2048 --sizes 100 --json {tmp_path}/out.json"""
    monkeypatch.setattr(sys, "argv", ["losses", *arguments.split()])
    benchmark.main()
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
    arguments = f"--corpus planted --vocabulary 600 --small-vocabulary 600 --tables machine --json {out}"
    monkeypatch.setattr(sys, "argv", ["losses", *arguments.split()])
    benchmark.main()
    found = json.loads(out.read_text())
    assert found["cost"] == ["old"] and found["machine"][0]["gflops"] > 0


def test_a_corpus_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["losses", "--corpus", "/nowhere.txt"])
    with pytest.raises(SystemExit, match="^There is no file /nowhere.txt"):
        benchmark.main()


# ---- What lesson 06 reads of it


def test_crossover_of_two_straight_lines_on_logarithmic_scales():
    assert recorded.crossover([10, 1000], [1, 100], [10, 10]) == pytest.approx(100)
    assert recorded.crossover([10, 100, 1000], [1, 10, 100], [2, 5, 5]) == pytest.approx(10 * 10**0.5)
    assert recorded.crossover([5, 10, 1000], [9, 1, 100], [8, 10, 10]) == pytest.approx(100)  # the last change counts
    with pytest.raises(ValueError, match="smaller"):
        recorded.crossover([10, 100], [2, 3], [1, 1])
    with pytest.raises(ValueError, match="larger"):
        recorded.crossover([10, 100], [1, 2], [3, 3])


def test_recorded_numbers_are_taken_from_their_rows():
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
    run = {"loss": "nce", "vocabulary": 10, "start": "frequency"}
    quality = [{**run, "seed": seed, "twins": seed + check} for seed in (0, 10) for check in (1, 2, 3)]
    bench = {"settings": {"seeds": 2}, "quality": [*quality, {**quality[0], "start": "zero"}]}
    assert recorded.final(bench, "nce", "twins", 10).tolist() == [3, 13]


def test_the_raced_trainings_are_those_of_the_race():
    rates = [
        {"vocabulary": 651, "part": part, "loss": loss, "lr": lr, "seed": seed, "seconds": look + seed / 4}
        | {"pairs": 10 * look, "twins": 3 * seed + look}
        for part, lr, seeds in (("tuning", 0.3, [3]), ("race", 0.1, [0, 1, 2]))
        for loss in LOSSES
        for seed in seeds
        for look in range(2)
    ]
    found = recorded.raced({"rates": rates}, 651)["nce"]
    assert (found.lr, found.seconds.tolist(), found.pairs.tolist()) == (0.1, [0.25, 1.25], [0, 10])
    assert found.scores.tolist() == [[0, 1], [3, 4], [6, 7]]


@pytest.mark.parametrize("number, text", [(0.794, "0.79"), (14.4, "14"), (984.2, "980"), (1340, "1,300")])
def test_two_digits(number, text):
    assert recorded.two_digits(number) == text


def test_recorded_costs_are_the_medians_of_three_runs():
    bench = json.loads((Path(benchmark.__file__).parent / "results" / "losses.json").read_text())
    for row in bench["cost"]:
        assert len(row["runs"]) == 3
        assert row["ms"] == sorted(row["runs"])[1]


def test_the_verdict_shows_the_range_of_the_readers_rounds():
    bench = json.loads((Path(benchmark.__file__).parent / "results" / "losses.json").read_text())
    yours = {100: [0.8, 1.2, 0.9]}
    shown = recorded.verdict_table(bench, yours, lambda words: "neither", lambda ratios, leads: len(ratios)).data
    assert "| 100 | 0.8 to 1.2 |" in shown and "**6**" in shown and "| 651 | not timed |" in shown


def test_a_round_that_does_not_cross_is_counted_and_takes_no_other_with_it():
    bench = json.loads((Path(benchmark.__file__).parent / "results" / "losses.json").read_text())
    never, half = ([1, 1], [2, 2]), ([1, 3], [2, 2])
    shown = recorded.crossovers_table(bench, [64, 256], {"nce": [half, never, half], "sgns": [never]}).data
    assert "1 of 3 do not cross" in shown and "add larger vocabularies" in shown
