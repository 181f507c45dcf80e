"""The strategies of lesson 12 and its benchmark on two real ranks, against the same in one process."""

import time
from functools import partial
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf
from clusters import SELDOM

from benchmarks import more_strategies, training
from benchmarks.training import train_strategy
from helpers.cluster.ranks import connect
from helpers.exchange.merging import due_rows
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from helpers.word2vec.model import make_tables
from lesson_parts import strategies, turns

pytestmark = pytest.mark.ranks
cloudpickle.register_pickle_by_value(more_strategies)  # engines cannot import it

WORDS, DIM, BATCH, STEPS = 200, 8, 64, 5
# make, lr of a rank (half as large where changes are summed, not averaged), tolerance; lesson 12 asserts the others
EXACT = {
    "float16": (more_strategies.make_halved, 1.0, 1e-3),  # a half has 11 bits, and these gradients are below 1
    "fused": (more_strategies.make_fused, 1.0, 1e-6),
    "accumulated": (partial(more_strategies.make_fused, parts=4), 1.0, 1e-6),
    "hot and cold": (partial(strategies.make_local_sgd, due=due_rows, n=1), 0.5, 1e-6),
    "changed": (partial(more_strategies.make_changed, n=1), 0.5, 1e-6),
}


@pytest.fixture(scope="module")
def ranks():
    with connect(2, env=SELDOM) as ranks:
        yield ranks


def batches(seed=0, steps=STEPS, pairs=BATCH):
    return np.random.default_rng(seed).integers(0, WORDS, (steps, 2, pairs), dtype=np.int32)


def train(make, pairs, lr, hvd=None, final=False):
    """The three tables after the steps, and after an exchange of all rows if `final`."""
    tf.random.set_seed(3)  # the same negatives on each rank, and in one process
    tables = make_tables(WORDS, DIM, seed=0)
    step = make(tables, hvd)
    for centers, contexts in pairs:
        step(centers, contexts, lr)
    if final:
        step([], [], 0.0, np.arange(WORDS))
    return [table.numpy() for table in tables]


def half(make, pairs, lr, final=False):
    """On a rank: its half of every batch."""
    import horovod.tensorflow as hvd

    return train(make, np.split(pairs, hvd.size(), axis=2)[hvd.rank()], lr, hvd, final)


def difference(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_an_exchange_after_every_step_is_the_serial_step(name, ranks):
    make, lr, tolerance = EXACT[name]
    serial = train(make, batches(), 1.0)
    first, second = ranks.run(half, make, batches(), lr)
    assert difference(first, second) == 0
    assert difference(first, serial) < tolerance
    assert difference(serial, train(make, batches(), 0.0)) > 0.05


def standing_still(tables, hvd=None):
    """A strategy whose step returns without updating."""
    return lambda *batch: tf.constant(0.0)


def test_lesson_12_does_not_take_a_step_that_stands_still_for_the_serial_one(ranks):
    with pytest.raises(AssertionError):
        turns.assert_serial(ranks, standing_still)


def test_what_travels_beside_the_computation_arrives_one_step_later(ranks):
    make = partial(strategies.make_overlapped, n=1)
    serial = train(make, batches(steps=1), 1.0)
    before = ranks.run(half, make, batches(steps=1), 0.5)
    after = ranks.run(half, make, batches(steps=1), 0.5, final=True)
    assert difference(*before) > 1e-3
    assert difference(*after) < 1e-6 and difference(after[0], serial) < 1e-6


@pytest.mark.parametrize("make", [strategies.make_local_sgd, more_strategies.make_changed])
def test_replicas_are_equal_after_each_exchange_of_several_steps(make, ranks):
    for steps in (1, 3):
        first, second = ranks.run(half, make, batches(steps=steps, pairs=BATCH * strategies.LOCAL_STEPS), 0.3)
        assert difference(first, second) == 0
    assert np.isfinite(first[0]).all()


def ten_rows(step, size):
    return due_rows(step, size, hot=10)


def test_the_rows_that_are_due_are_equal_and_the_others_wait_for_the_last_exchange(ranks):
    make, pairs = partial(strategies.make_local_sgd, due=ten_rows), BATCH * strategies.LOCAL_STEPS
    for steps in (1, 4):
        first, second = ranks.run(half, make, batches(steps=steps, pairs=pairs), 0.3)
        same = (first[0] == second[0]).all(axis=1)
        assert same[ten_rows(steps - 1, WORDS)].all() and not same.all()
    first, second = ranks.run(half, make, batches(steps=2, pairs=pairs), 0.3, final=True)
    assert difference(first, second) == 0


def test_accumulated_gradients_are_those_of_the_bigger_batch():
    bigger = train(more_strategies.make_fused, batches(), 1.0)
    assert difference(bigger, train(partial(more_strategies.make_fused, parts=4), batches(), 1.0)) < 1e-6


# ---- The loop of the benchmark


def planted():
    return Vocab.build(load_corpus("planted", n_words=5_000, progress=False).words)


def train_short(name, n, limits):
    """On a rank: `n` words for both ranks together, of which rank 0 gets fewer."""
    import horovod.tensorflow as hvd

    strategy = more_strategies.ALL[name]
    strategy = strategy._replace(batch=96 if strategy.batch == 96 else 160)
    found = train_strategy(strategy, 50 + np.arange(n) % 500, planted(), hvd=hvd, **limits)
    return found["steps"], found["pairs"], found["vectors"]


@pytest.mark.parametrize(("name", "n"), [("canonical", 21), ("deduplicated rows", 1), ("overlap", 81), ("blocks", 400)])
def test_a_rank_with_a_short_or_empty_shard_ends_with_the_others(name, n, ranks):
    (steps, pairs, vectors), (other_steps, other_pairs, other) = ranks.run(train_short, name, n, {"pairs": 3_200})
    assert steps == other_steps >= 4 and (name == "blocks" or pairs <= 1.1 * other_pairs)
    assert np.isfinite(vectors).all() and np.abs(vectors - other).max() < 1e-5
    assert n > 1 or pairs == other_pairs == 0


@pytest.mark.parametrize("name", ["bigger batch", "blocks"])
def test_ranks_that_train_for_some_seconds_make_equally_many_steps(name, ranks):
    (steps, *_), (other_steps, *_) = ranks.run(train_short, name, 2_000, {"seconds": 0.2})
    assert steps == other_steps >= 4


@pytest.mark.parametrize(("name", "due"), [("bigger batch", 100), ("blocks", 25 * 10)])
def test_seconds_are_as_many_steps_as_fit_into_them_and_are_reported(name, due, monkeypatch):
    """By a clock on which a step of pairs takes 0.02 s, and an epoch of blocks 0.08 s."""
    reports, ids = [], 50 + np.arange(2_000) % 500
    monkeypatch.setattr(training, "median_seconds", lambda step, repeats: 0.02)
    clock = SimpleNamespace(perf_counter=lambda: 0.008 * len(reports))
    monkeypatch.setattr(training, "time", clock if name == "blocks" else time)
    strategy = strategies.STRATEGIES[name]._replace(batch=160)
    found = train_strategy(strategy, ids, planted(), seconds=2.0, report=lambda *row: reports.append(row))
    assert found["steps"] == due and reports


def drawn_negatives(alone):
    """On a rank: what it draws in the first step of `train_strategy`."""
    import horovod.tensorflow as hvd

    drawn = []

    def make(tables, hvd=None):
        def step(centers, contexts, lr):
            labels = tf.cast(contexts[:, None], tf.int64)
            drawn.append(tf.random.log_uniform_candidate_sampler(labels, 1, 64, True, 500)[0].numpy())
            return tf.constant(0.0)

        return step

    strategy = strategies.Strategy(make, batch=160)
    train_strategy(strategy, 50 + np.arange(2_000) % 400, planted(), pairs=640, seed=5, hvd=None if alone else hvd)
    return drawn[0].tolist()


def test_each_rank_draws_negatives_of_its_own_and_rank_0_as_one_process(ranks):
    first, second = ranks.run(drawn_negatives, False)
    assert first != second
    assert ranks.run(drawn_negatives, True) == [first, first]


@pytest.mark.parametrize("limits", [{}, {"pairs": 100, "seconds": 1.0}])
def test_a_run_has_one_limit(limits):
    with pytest.raises(ValueError, match="give either pairs or seconds"):
        train_strategy(strategies.STRATEGIES["blocks"], None, None, **limits)
