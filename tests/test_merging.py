"""How replicas stay together: the block trainer on real ranks against itself on one process."""

import threading
from functools import partial

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf
import test_block_trainer
from clusters import SELDOM
from test_block_trainer import (
    LR,
    SETTINGS,
    SMALL,
    V,
    blocks_of,
    highest,
    planted_text,
    random_tables,
    trained,
    variables,
)

from helpers.cluster.ranks import connect
from helpers.exchange import merging
from helpers.word2vec import block_trainer
from helpers.word2vec.blocks import Blocks
from helpers.word2vec.scores import twins_found

pytestmark = pytest.mark.ranks
cloudpickle.register_pickle_by_value(test_block_trainer)  # engines cannot import it


def test_every_row_is_due_once_in_its_period():
    hot, size = 40, 200
    due = np.array([np.bincount(merging.due_rows(step, size, hot), minlength=size) for step in range(64)])
    times = due.sum(axis=0)
    borders = [0, hot, 2 * hot, 4 * hot, size]
    assert [set(times[a:b]) for a, b in zip(borders, borders[1:], strict=False)] == [{64}, {32}, {16}, {8}]
    assert np.ptp(due.sum(axis=1)) <= len(borders)  # each exchange is about equally large


def steps_on_ranks(start, parts, steps):
    """Train this rank's part, one step at a time, and exchange all rows after each: the tables after each exchange."""
    import horovod.tensorflow as hvd

    words = parts[hvd.rank()]
    tables, common = variables(start), variables(start)
    train = block_trainer.make_train(tables, highest(), SMALL)
    allreduce, found = partial(hvd.allreduce, op=hvd.Sum), []
    exchange = merging.make_exchange(tables, common, allreduce, merge_changes=lambda total, squares: total)
    for step in range(steps):
        train(words[step : step + 1], LR / 50)
        with exchange(range(V)):
            pass
        found.append([[table.numpy() for table in both] for both in (tables, common)])
    return found


OFTEN = Blocks(interval=10_000, hot=100)


def train_shards(ids, vocab, lengths, settings):
    """Train a shard of so many words on each rank, with an exchange every 10,000 words."""
    import horovod.tensorflow as hvd

    borders = np.cumsum([0, *lengths])
    part = ids[borders[hvd.rank()] : borders[hvd.rank() + 1]]
    return block_trainer.train_blocks(part, vocab, **settings, blocks=OFTEN, hvd=hvd)


@pytest.fixture(scope="module")
def planted():
    return planted_text()


@pytest.fixture(scope="module")
def ranks():
    with connect(2, env=SELDOM) as ranks:
        yield ranks


def test_exchange_after_every_step_is_the_serial_run(ranks):
    """Serial: the same blocks in steps twice as large. Sums are taken in another order, so up to 1e-5."""
    texts = [blocks_of(3 * SMALL.blocks * SMALL.tokens, seed) for seed in (7, 8)]
    parts, start, steps = [words for _, words in texts], random_tables(2, 0.1), 3
    on_ranks = ranks.run(steps_on_ranks, start, parts, steps)
    serial = start
    for step in range(steps):
        together = np.concatenate([part[step : step + 1] for part in parts], axis=1)
        serial, _ = trained(serial, together, LR / 50)
        for tables, common in (found[step] for found in on_ranks):
            for i in range(2):
                assert abs(serial[i] - start[i]).max() > 0.01
                np.testing.assert_allclose(tables[i], serial[i], atol=1e-5)
                np.testing.assert_allclose(common[i], serial[i], atol=1e-5)
                assert (common[i] == on_ranks[0][step][1][i]).all()


def order_of_events(words):
    """What happens on this rank in one exchange, in order: the sum of all ranks arrives while the rank still trains."""
    import horovod.tensorflow as hvd

    events, arrived = [], threading.Event()

    def allreduce(own):
        total = hvd.allreduce(own, op=hvd.Sum)
        events.append("sum")
        arrived.set()
        return total

    tables, common = variables(random_tables(3)), variables(random_tables(3))
    exchange = merging.make_exchange(tables, common, allreduce)
    train = block_trainer.make_train(tables, highest(), SMALL)
    with exchange(range(V)):
        events.append("training begins")
        train(words, LR)
        events.append("half" if arrived.wait(60) else "nothing came")
        train(words, LR)
        events.append("training ends")
    return events


def test_changes_travel_while_a_rank_trains(ranks):
    _, words = blocks_of(SMALL.blocks * SMALL.tokens, 5)
    for events in ranks.run(order_of_events, words):
        assert sorted(events[:2]) == ["sum", "training begins"]
        assert events[2:] == ["half", "training ends"]


def train_with_seldom_exchanges(ids, vocab):
    import horovod.tensorflow as hvd

    asked = []

    def never_due(step, size, hot):
        asked.append((step, size, hot))
        return np.arange(0)

    settings = {"dim": 8, "epochs": 1, "threshold": 1, "blocks": Blocks(hot=7)}
    vectors = block_trainer.train_blocks(ids, vocab, **settings, due_rows=never_due, hvd=hvd)
    assert asked == [(step, len(vocab), 7) for step in range(10)]
    settings["merge_changes"] = lambda total, squares: tf.zeros_like(total)
    nothing = block_trainer.train_blocks(ids, vocab, **settings, hvd=hvd)
    return vectors, nothing


def test_what_was_never_due_travels_at_the_end_and_is_merged_as_one_says(ranks, planted):
    (first, nothing), (second, _) = ranks.run(train_with_seldom_exchanges, *planted)
    start = block_trainer.block_tables(len(planted[1]), 8, seed=0)[0]
    assert (first == second).all() and (first[1:] != start[1:]).any(axis=1).all()
    assert (nothing[1:] == start[1:]).all()


@pytest.mark.parametrize(
    "how", [{}, {"threads": 2}, {"block_changes": block_trainer.block_changes}], ids=["kernel", "threads", "graph"]
)
def test_replicas_end_equal_and_as_good_as_one_rank(ranks, planted, how):
    part = len(planted[0]) // 2
    first, second = ranks.run(train_shards, *planted, [part, part], SETTINGS | how)
    assert (first == second).all()
    assert twins_found(first, planted[1].words) > 0.8


SHORT = SETTINGS | {"dim": 8, "epochs": 2}


@pytest.mark.parametrize("lengths", [(30_000, 7_001), (30_000, 0), (0, 3)], ids=["shorter", "empty", "tiny"])
def test_shards_of_any_length_end_without_a_hang(ranks, planted, lengths):
    first, second = ranks.run(train_shards, *planted, lengths, SHORT)
    assert (first == second).all() and np.isfinite(first).all()


def test_shards_without_words_on_all_ranks_are_an_error(ranks, planted):
    with pytest.raises(Exception, match="the text has no word of the vocabulary"):
        ranks.run(train_shards, *planted, (0, 0), SHORT)
    assert len(ranks.run(train_shards, *planted, (3_000, 3_000), SHORT)) == 2  # the ranks live on
