"""What an exchange costs: plans against what steps send, predictions by hand, and the fitted line."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import more_strategies
from helpers.exchange import cost_model
from helpers.exchange.cost_model import fit_line
from helpers.exchange.merging import due_rows
from helpers.text.corpus import load_corpus
from helpers.text.vocab import Vocab
from lesson_parts import plans, strategies


@pytest.fixture(scope="module")
def text():
    words = load_corpus("planted", n_words=20_000, progress=False).words
    vocab = Vocab.build(words)
    return vocab.encode(words), vocab


class Counting:
    """In the place of horovod.tensorflow on one of two ranks: counts what it would send, and returns what it was given.

    The tape sends as horovod.tensorflow.allreduce does: a dense gradient in one message, a sparse one in two.
    """

    Sum = Compression = None
    messages = bytes = 0

    def size(self):
        return 2

    def allgather(self, tensor):
        self.messages += 1
        self.bytes += tensor.dtype.size * int(tf.size(tensor))
        return tensor

    def allreduce(self, tensor, op=None, name=None):
        if isinstance(tensor, tf.IndexedSlices):
            return tf.IndexedSlices(self.allgather(tensor.values), self.allgather(tensor.indices), tensor.dense_shape)
        return self.allgather(tensor)  # a ring of two sends each byte once, too

    def DistributedGradientTape(self, tape, sparse_as_dense=False):
        def gradient(loss, tables):
            found = tape.gradient(loss, tables)
            return [self.allreduce(tf.convert_to_tensor(g) if sparse_as_dense else g) for g in found]

        return SimpleNamespace(gradient=gradient)


PER_STEP = [name for name in more_strategies.ALL if name not in ("blocks", "dense, float16", "changed rows")]


@pytest.mark.parametrize("name", PER_STEP)
def test_the_plan_is_what_a_step_sends(name, text):
    """Exact without chance in it. Which rows a batch shares is drawn: within a tenth, over the mean of some steps."""
    ids, vocab = text
    strategy, rng, steps = more_strategies.ALL[name], np.random.default_rng(0), 8
    pairs, messages, sent = more_strategies.planned(name, ids, vocab)
    share = vocab.counts * vocab.keep_probability()
    draw = partial(rng.choice, len(vocab), p=share / share.sum())
    counting = Counting()
    tf.config.run_functions_eagerly(True)
    try:
        make = partial(strategy.make, n=1) if strategy.local else strategy.make
        step, n = make(strategies.start_tables(vocab), counting), 64 if strategy.local else strategy.batch
        for _ in range(steps):
            step(*(tf.constant(draw(n), tf.int32) for _ in range(2)), 0.0)
    finally:
        tf.config.run_functions_eagerly(False)
    drawn = name in ("deduplicated rows", "one message", "accumulation", "hot and cold", "overlap")
    assert pairs == strategy.batch and counting.messages == messages * steps
    assert counting.bytes / steps == pytest.approx(sent, rel=0.1 if drawn else 1e-9)


def test_a_plan_by_hand(text):
    ids, vocab = text
    words, row = len(vocab), 4 * 128
    assert more_strategies.planned("dense", ids, vocab, size=4)[2] == pytest.approx(1.5 * words * (2 * row + 4))
    assert more_strategies.planned("dense, float16", ids, vocab)[2] == words * row + 2 * words
    assert more_strategies.planned("canonical", ids, vocab, size=4)[2] == 3 * (96 * 516 + 160 * 532)
    pairs, messages, sent = more_strategies.planned("blocks", ids, vocab)
    due = np.mean([len(due_rows(step, words)) for step in range(64)])
    assert (10 * pairs, messages) == (pytest.approx(strategies.pairs_of(ids, vocab) / 2), 1)
    assert sent == pytest.approx((2 * due + words / 10) * 516)


def test_a_prediction_by_hand(text):
    plan = lambda *_: (100, 2, 3_000)  # noqa: E731
    ask = partial(plans.predicted, ids=None, vocab=None, disabled=20_000, network=(0.001, 1e6), plan=plan)
    assert ask("dense") == pytest.approx(200 / (0.010 + 0.005))  # 10 ms of compute for the 200 pairs of two ranks
    assert ask("overlap") == pytest.approx(200 / 0.010)
    assert ask("overlap", network=(0.010, 1e6)) == pytest.approx(200 / 0.023)


# ---- Measured


def test_the_fit_finds_latency_and_bandwidth():
    timings = [("allreduce", n, 0.002 + n / 5e8) for n in (1e3, 1e5, 1e7)]
    assert cost_model.latency_and_bandwidth(timings) == pytest.approx((0.002, 5e8))


def test_fit_is_relative():
    """A 10 % error of one small and one large message weighs the same."""
    sizes = np.array([1e3, 1e3, 1e9, 1e9])
    seconds = np.array([0.9e-3, 1.1e-3, 0.9, 1.1])
    latency, bandwidth, error = fit_line(sizes, seconds)
    assert latency == pytest.approx(1e-3, rel=0.03) and bandwidth == pytest.approx(1e9, rel=0.03)
    assert error == pytest.approx(0.1, rel=0.1)


def test_fit_is_never_negative():
    latency, _, error = fit_line([1e6, 2e6, 4e6], [1e-3, 3e-3, 8e-3])
    assert latency == 0 and error > 0.1
