"""The command lines of the benchmarks, on texts and messages so small that they end in seconds."""

import json
import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import SELDOM

from benchmarks import (
    allreduce,
    bandwidth,
    cycle_time,
    full_size,
    long_text,
    many_ranks,
    models,
    options,
    reducescatter,
    roofline,
    strategies,
    strategy_turns,
    words_per_second,
)
from examples.stopwatch import Stopwatch
from helpers.cluster import connect
from helpers.cluster.environment import limit_threads
from helpers.text import Vocab, load_corpus
from helpers.word2vec import Blocks, train_blocks

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def ranks():
    with connect(2, env={**SELDOM, **models.TIMELINE}) as ranks:
        ranks.run(limit_threads, 1)  # as the benchmarks want it, before TensorFlow has computed anything
        yield ranks


@pytest.fixture
def run(ranks, tmp_path, monkeypatch, capsys):
    """A function: what a benchmark's main() saves with these arguments and what it prints.

    Where it connects to ranks, it gets the two that are there.
    """

    def run(module, *arguments, connects=None):
        monkeypatch.setattr(connects or module, "connect", lambda n, **options: nullcontext(ranks))
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments), "--json", f"{tmp_path}/out.json"])
        module.main()
        return json.loads((tmp_path / "out.json").read_text()), capsys.readouterr().out

    return run


def test_allreduce(run):
    found, said = run(allreduce, "--ranks", 2, "--repeats", 3, "--most-mb", 1)
    assert [row["bytes"] for row in found["rows"]] == [1024 * 4**i for i in range(6)]
    assert all(row["seconds"] > 0 and row["tcp_seconds"] > 0 for row in found["rows"])
    assert [line["system"] for line in found["fits"]] == ["horovod", "sockets"]
    assert "2 ranks, horovod: latency" in said


def test_reducescatter(run):
    found, said = run(reducescatter, "--runs", 1, "--calls", 2, "--mb", 1)
    assert found["settings"]["calls"] == 2
    assert [(row["rank"], row["alltoall"]) for row in found["rows"]] == [(0, 0), (1, 0)]
    assert "run 0: wrong in 2 calls:" in said


def test_full_size(run):
    found, said = run(full_size, "planted", "--vocabulary", 600, "--dim", 16, "--steps", 40)
    assert found["settings"]["corpus"] == "planted" and found["settings"]["vocabulary"] == 600
    assert [(row["ranks"], row["steps"]) for row in found["rows"]] == [(1, 40), (2, 21)]
    assert all(len(row["losses"]) == full_size.LOOKS and row["losses"][-1] == row["loss"] for row in found["rows"])
    assert "wordsim353" in said


def test_strategies(run):
    names = ["one message", "overlap", "blocks"]
    text = ["--corpus", "planted", "--words", 150_000, "--vocabulary", 600, "--seconds", 0.05]
    found, said = run(strategies, *text, "--strategies", *names)
    rows = {(row["strategy"], row["ranks"]): row for row in found["rows"]}
    assert list(rows) == [(name, size) for name in names for size in (1, 2)] + [("gensim, 2 workers", 2)]
    assert all(row["pairs_per_s"] > 0 and row["pairs"] > 0 for row in rows.values())
    for name in names:
        one, two = rows[name, 1], rows[name, 2]
        assert two["predicted"] > 0 and two["formula"] > 0 and two["share"] < 1
        assert two["bytes_per_pair"] > one["bytes_per_pair"]  # one rank's Horovod asks others by the clock
    assert found["settings"]["words"] == 150_000 and found["latency"] >= 0
    assert "overlap" in said


def test_strategy_turns(run, monkeypatch):
    """A group of the lesson, and of the controls the one that is not in it."""
    monkeypatch.setattr(strategy_turns, "GROUPS", (["canonical"],))
    monkeypatch.setattr(strategy_turns, "CONTROLS", ["bigger batch", "merging only"])
    monkeypatch.setattr(strategy_turns, "SECONDS", {"canonical": 0.01, "bigger batch": 0.01})
    text = ["--corpus", "planted", "--words", 100_000, "--vocabulary", 600]
    saved, said = run(strategy_turns, *text, "--runs", 1, "--turns", 1)
    (found,) = saved["runs"]
    assert [*found] == ["canonical", "bigger batch, no cache", "merging only, no cache"]
    assert all(min(speeds) > 0 for modes in found.values() for speeds in modes.values())
    ways = {len(speeds) for modes in found.values() for mode, speeds in modes.items() if mode != "one"}
    assert ways == {1} and len(found["canonical"]["one"]) == 4, "a rank alone before and after each of three"
    assert "| merging only |" in said


def test_long_text(run):
    found, said = run(long_text, "--words", 60_000, "--short", 20_000, "--vocabulary", 300)
    assert found["vocabulary"] == 301 and found["encoded_words_per_s"] > 0
    assert [found[name][0]["words"] for name in ("long", "short")] == [60_000, 20_000]
    assert "60,000 words" in said


@pytest.mark.parametrize("rule", [[], ["--rule"]], ids=["without the rule", "with it"])
def test_many_ranks(rule, run, tmp_path, monkeypatch):
    figure = tmp_path / "out.png"
    train, ways = many_ranks.train_on_ranks, []
    monkeypatch.setattr(many_ranks, "train_on_ranks", lambda *given: ways.append(given[-1]) or train(*given))
    small = ["--corpus", "planted", "--ranks", 2, "--epochs", 1, "--repeats", 1, *rule]
    saved, said = run(many_ranks, *small, "--figure", figure, connects=words_per_second)
    (found,) = saved["runs"]["2"]
    assert found["words_per_s"] > 0 and 0 <= found["waiting"] < 1
    assert ways == ["rule" if rule else "loop"]
    assert found["analogy"] is None  # its words are in no list of questions
    assert figure.stat().st_size > 1_000 and "words/s" in said


def train_watched(ids, vocab):
    """On a rank: the vectors, plain and measured, and what was measured."""
    import horovod.tensorflow as hvd

    train = partial(train_blocks, ids, vocab, dim=8, epochs=1, threshold=1)  # every word is kept
    stopwatch = Stopwatch(hvd)
    return train(hvd=hvd), train(watch=stopwatch.watch, hvd=stopwatch.hvd), stopwatch.spent


def test_watching_the_trainer_changes_nothing_in_it(ranks):
    words = load_corpus("planted", n_words=50_000).words
    vocab = Vocab.build(words)
    ids = vocab.encode(words)
    for plain, watched, spent in ranks.run(train_watched, ids, vocab):
        assert (watched == plain).all() and spent["steps"] >= len(ids) / (Blocks().tokens * Blocks().blocks)
        assert all(spent[part] > 0 for part in ("training", "cutting blocks", "gathering and adding", "last exchange"))
        assert spent["Horovod"] > 0 and spent["waiting for Horovod"] >= 0
    alone = Stopwatch()
    train_blocks(ids, vocab, dim=8, epochs=1, watch=alone.watch, hvd=alone.hvd)
    assert alone.spent["training"] > 0 and alone.spent["waiting for Horovod"] == 0


def test_bandwidth(ranks, capsys):
    text, small = (60_000, 500), SimpleNamespace(links=[None], repeats=1, epochs=1)
    no_links = SimpleNamespace(bandwidth=lambda mbit: None)
    (row,) = bandwidth.measure("blocks", ranks, no_links, text, small)
    row["predicted"] = bandwidth.predict(row, text, (0.001, 1e9))
    bandwidth.show(row)
    assert row["predicted"] > 0 and row["one"] > 0 and min(row["speeds"]) > 0
    assert "unlimited" in capsys.readouterr().out


def summed_in_16_bits(values):
    import horovod.tensorflow as hvd
    import tensorflow as tf

    halves = bandwidth.SixteenBits(hvd)
    total = halves.allreduce(tf.constant(values) * (hvd.rank() + 1), op=hvd.Sum, name="halves")
    return total.numpy(), int(halves.allreduce(tf.constant(2**24 + 1), op=hvd.Max, name="whole")), halves.size()


def test_16_bits_keep_three_digits_of_changes_and_of_their_squares(ranks):
    values = np.float32([1e-6, -1e-4, 0.03, -2, 300, 1e-9])
    for found, whole, size in ranks.run(summed_in_16_bits, values):
        np.testing.assert_allclose(found, 3 * values, rtol=1e-3, atol=1e-9)
        assert whole == 2**24 + 1 and size == 2


def test_the_work_of_a_step_is_that_of_its_products():
    """Of one block of one center, one neighbour on each side and one random word, in two dimensions."""
    small = Blocks(tokens=1, blocks=1, random=1, window=1)
    operations, gathered, scattered = roofline.work_of_a_step(small, 2)
    assert operations == 3 * 2 * (1 * 4 * 2) and gathered == 2 * 5 * 2 * 4 and scattered == 3 * 5 * 2 * 4
    operations, moved = roofline.work_of_the_loop(small, 2)
    assert operations == 3 * 2 * (1 * 3 * 2) and moved == 2 * 5 * 2 * 4


def test_cycle_times_are_those_of_the_lessons_own_step(run, monkeypatch):
    last = cycle_time.KINDS_ON_RANKS
    assert all(f"{name} = steps_of_kind(" in last for name in cycle_time.KINDS.values())
    for cell in [*cycle_time.cells_of_ranks(cycle_time.LESSON), last]:
        compile(cell, "cell", "exec")
    monkeypatch.setattr(cycle_time, "measure", lambda cycle, ranks, rows: dict.fromkeys(cycle_time.KINDS, [cycle]))
    found, said = run(cycle_time, "--cycles", 1, 0.1, "--turns", 2)
    assert [row["ms"] for row in found["rows"]] == 4 * [[1, 1]] + 4 * [[0.1, 0.1]]
    assert "cycle 0.1 ms, no exchange" in said


def test_models(run, tmp_path):
    names = ["word2vec, canonical", "twenty"]
    figure = tmp_path / "out.png"
    small = ["--corpus", "planted", "--words", 100_000, "--vocabulary", 600, "--turns", 1, "--seconds", 0.01]
    found, said = run(models, *small, "--models", *names, "--figure", figure)
    rows = {row["model"]: row for row in found["rows"]}
    assert [*rows] == names and figure.stat().st_size > 1_000
    for name, row in rows.items():
        assert min(turn for turns in row["ms"].values() for turn in turns) > 0
        assert np.isnan(row["bytes_counted"]) or 0.7 < row["bytes_counted"] / row["bytes"] < 3
        assert 0.9 < row["messages_counted"] <= row["tensors_counted"]
        assert row["tensors_counted"] == (5 if name == "word2vec, canonical" else row["tensors"])
    assert "| twenty | 0.011 |" in said


@pytest.mark.parametrize("name", ["dates", "encoder"])
def test_no_edit_of_a_lesson_takes_a_definition_of_its_model_away(name):
    texts = [models.read("planted", 600, 100_000)] * 2
    step_of, some, (tensors, sent) = models.MODELS[name](SimpleNamespace(rank=lambda: 0), *texts)
    assert np.isfinite(step_of(None)(*some[0])) and tensors > 0 and sent > 0


def test_a_step_is_predicted_from_computing_messages_and_bytes():
    row = {"model": "cnn", "bytes": 3e6, "ms": {"beside": [10, 20]}}
    assert models.predicted_ms(row, (0.002, 1e9), 4) == pytest.approx([10 + 4 * 2 + 3, 20 + 4 * 2 + 3])


@pytest.mark.parametrize("module", [allreduce, models, strategies, strategy_turns, words_per_second])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(module, monkeypatch):
    monkeypatch.setattr(module, "connect", None)  # would raise
    text = [] if module is allreduce else ["--corpus", "planted"]
    text += ["--vocabulary", "300"] if module in (models, strategies, strategy_turns) else []
    monkeypatch.setattr(sys, "argv", [module.__name__, *text, "--json", "/nowhere/out.json"])
    with pytest.raises(SystemExit, match="cannot be written: No such file or directory"):
        module.main()


def test_options_refuse_what_is_no_positive_number():
    for value in ("0", "-3", "1.5", "x"):
        with pytest.raises((ValueError, options.argparse.ArgumentTypeError)):
            options.positive(value)
    assert options.positive("3") == 3
