"""helpers.word2vec.shared_negatives against plain loops over pairs, and on real ranks against itself on one process."""

import sys
import threading
from dataclasses import replace
from functools import partial

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf
from clusters import SELDOM

from helpers.cluster.ranks import connect
from helpers.text.corpus import load_corpus
from helpers.text.skipgram import pairs_within, shard
from helpers.text.vocab import Vocab
from helpers.word2vec import blocks, replicas, shared_negatives
from helpers.word2vec.blocks import Blocks
from helpers.word2vec.evaluation import twins_found

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # engines cannot import this file

V, DIM, WINDOW, NEGATIVES, LR = 30, 6, 3, 5, 0.1
SMALL = Blocks(window=WINDOW, negatives=NEGATIVES)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_tables(seed, scale=0.5):
    """What make_train starts from: the row of UNK is 0."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(0, scale, (V, DIM)).astype(np.float32) for _ in range(2)]
    for table in tables:
        table[0] = 0
    return tables


def highest():
    """Bounds that some rows reach and others do not; UNK learns nothing."""
    rates = np.linspace(0.02, 0.2, 2 * V).reshape(V, 2).T
    rates[:, 0] = 0
    return [tf.constant(row, tf.float32) for row in rates]


def blocks_of(n, seed, noise=None):
    """A text of n random words, cut as one part: (text, words)."""
    rng = np.random.default_rng(seed)
    text = rng.integers(1, V, n).astype(np.int32)
    noise = rng.integers(1, V, (100, SMALL.random)) if noise is None else noise
    return text, blocks.cut_blocks(blocks.pad_text(text, SMALL), 0, 1, noise, rng, SMALL)


def in_text_order(array):
    return array.swapaxes(0, 1).reshape(-1, array.shape[-1])


def variables(arrays):
    return [tf.Variable(array) for array in arrays]


def trained(start, words, lr=LR):
    tables = variables(start)
    loss = shared_negatives.make_train(tables, highest(), SMALL)(words, lr)
    return [table.numpy() for table in tables], float(loss)


def looped(start, text, words):
    """One step, pair by pair, from the definition of skip-gram with negative sampling: the tables after it.

    A pair counts as often as it is drawn by windows of 1, 2 .. WINDOW words. A center has NEGATIVES random words for
    each place in a window of mean size, also for those beyond the text.
    """
    before = [table.astype(np.float64) for table in start]
    after = [table.copy() for table in before]
    random = in_text_order(words)[:, SMALL.tokens + 2 * WINDOW :]
    rates = np.minimum(LR, highest())

    def learn(center, context, label, weight):
        error = weight * (label - sigmoid(before[0][center] @ before[1][context]))
        after[0][center] += rates[0][center] * error * before[1][context]
        after[1][context] += rates[1][context] * error * before[0][center]

    for reach in range(1, WINDOW + 1):
        for i, j in np.stack(pairs_within(np.arange(len(text)), np.full(len(text), reach)), axis=1):
            learn(text[i], text[j], 1, 1 / WINDOW)
    for i, center in enumerate(text):
        for word in random[i // SMALL.tokens]:
            learn(center, word, 0, np.mean([2, 4, 6]) * NEGATIVES / SMALL.random)
    return after


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 200, 16 * 32])
def test_a_step_is_the_sum_over_all_pairs_of_the_text(n):
    text, words = blocks_of(n, seed=n)
    assert len(words) == 1
    start = random_tables(0)
    expected = looped(start, text, words)
    found, _ = trained(start, words)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    if n > 1:
        assert not np.allclose(found[0], start[0], atol=1e-3)


def test_parts_and_blocks_lose_no_word_and_make_none():
    n, parts = 2_000, 3
    rng = np.random.default_rng(0)
    text = np.arange(1, n + 1, dtype=np.int32)  # the word is the place
    padded, noise = blocks.pad_text(text, SMALL), np.ones((1, SMALL.random), int)
    cut = [in_text_order(blocks.cut_blocks(padded, i, parts, noise, rng, SMALL)) for i in range(parts)]
    centers = np.concatenate([words[:, WINDOW : WINDOW + SMALL.tokens].ravel() for words in cut])
    assert centers[centers > 0].tolist() == text.tolist()
    for words in cut:
        near = words[:, : SMALL.tokens + 2 * WINDOW]
        steps = np.diff(near, axis=1)
        assert ((steps == 1) | (near[:, 1:] == 0) | (near[:, :-1] == 0)).all()  # neighbours are neighbours
        inner = near[(near > 0).any(axis=1)][:, [0, -1]][1:-1]
        assert (np.diff(inner, axis=1) == SMALL.tokens + 2 * WINDOW - 1).all()  # also across a border


def test_padding_and_the_unknown_word_are_never_touched():
    _, words = blocks_of(40, seed=3)
    start = random_tables(1)
    found, loss = trained(start, words)
    assert not found[0][0].any() and not found[1][0].any()
    words[:, :, : 2 * WINDOW + SMALL.tokens] = 0
    same, none = trained(start, words)
    assert all((one == other).all() for one, other in zip(same, start, strict=True))
    assert loss > 0 and none == 0


def test_changes_are_the_gradient_of_the_loss():
    rng = np.random.default_rng(4)
    weights = tf.constant(rng.choice([0.0, 1.0, 0.3], (2, 7, 9)), tf.float32)
    labels = tf.constant(rng.choice([0.0, 1.0], 9), tf.float32)
    rows = [tf.Variable(rng.normal(0, 0.5, (2, n, DIM)), dtype=tf.float32) for n in (7, 9)]
    with tf.GradientTape() as tape:
        loss = shared_negatives.block_loss(*rows, labels, weights) * tf.reduce_sum(weights * labels)
    found = shared_negatives.block_changes(*rows, labels, weights, tf.fill([2, 7], LR), tf.fill([2, 9], LR))
    for change, gradient in zip(found, tape.gradient(loss, rows), strict=True):
        np.testing.assert_allclose(change, -LR * gradient, atol=1e-6)


def test_a_logit_out_of_bounds_changes_nothing():
    far, near = (tf.fill([1, 1, 4], value) for value in (1.3, 1.2))  # logits 6.76 and 5.76
    label, weight, rate = tf.zeros([1]), tf.ones([1, 1, 1]), tf.fill([1, 1], LR)
    assert not np.any(shared_negatives.block_changes(far, far, label, weight, rate, rate))
    assert np.all(shared_negatives.block_changes(near, near, label, weight, rate, rate) != 0)


def test_every_row_is_due_once_in_its_period():
    hot, size = 40, 200
    due = np.array([np.bincount(replicas.due_rows(step, size, hot), minlength=size) for step in range(64)])
    times = due.sum(axis=0)
    borders = [0, hot, 2 * hot, 4 * hot, size]
    assert [set(times[a:b]) for a, b in zip(borders, borders[1:], strict=False)] == [{64}, {32}, {16}, {8}]
    assert np.ptp(due.sum(axis=1)) <= len(borders)  # each exchange is about equally large


def test_noise_is_the_distribution_of_word2vec_without_unk():
    vocab = Vocab(["UNK", "a", "b", "c"], [1000, 81, 16, 1])
    noise = blocks.noise_table(vocab, np.random.default_rng(0), SMALL)
    share = np.bincount(noise.ravel(), minlength=4) / noise.size
    np.testing.assert_allclose(share, np.array([0, 27, 8, 1]) / 36, atol=1e-5)


def test_every_block_has_a_random_word_from_each_part_of_the_noise():
    words = 10 * SMALL.random
    vocab = Vocab(["UNK", *map(str, range(words))], [1] * (words + 1))
    noise = blocks.noise_table(vocab, np.random.default_rng(0), SMALL)
    assert (np.ptp(noise, axis=0) == 9).all() and len(np.unique(noise[:, :2], axis=0)) == 100
    assert (np.diff(noise.min(axis=0)) == 10).all()
    _, cut = blocks_of(1_000, seed=4, noise=noise)
    rows = {tuple(row) for row in noise}
    assert all(tuple(row) in rows for row in cut[:, :, -SMALL.random :].reshape(-1, SMALL.random))


@pytest.fixture(scope="module")
def planted():
    words = load_corpus("planted", n_words=200_000).words
    vocab = Vocab.build(words, size=len(set(words)) + 1)
    return vocab.encode(words), vocab


SETTINGS = {"dim": 32, "epochs": 10, "lr": 0.05, "threshold": 1e-2}


def test_training_finds_the_twins_and_reports(planted):
    seen = []
    vectors = shared_negatives.train_blocks(*planted, **SETTINGS, report=lambda *row: seen.append(row))
    assert vectors.shape == (len(planted[1]), 32) and vectors.dtype == np.float32
    assert twins_found(vectors, planted[1].words) > 0.8
    intervals = 10 * SMALL.intervals  # of 20,000 words
    assert [row[:2] for row in seen] == [(step, intervals) for step in range(intervals + 1)]
    assert seen[1][2] == pytest.approx(6 * np.log(2), abs=0.01)  # 6 questions for each pair, all rows still 0
    assert seen[-1][2] < 2.5 and seen[-1][3] > 0


def test_a_seed_repeats_training_and_another_one_does_not(planted):
    ids, vocab = planted
    first, again, other = (
        shared_negatives.train_blocks(ids[:20_000], vocab, dim=8, epochs=1, seed=seed) for seed in (0, 0, 1)
    )
    assert (first == again).all() and (first != other).any()


def test_every_hyper_parameter_has_an_effect_and_stays_within_the_call(planted):
    """`hot` only changes what is exchanged, so nothing in one process."""
    ids, vocab = planted
    small = partial(shared_negatives.train_blocks, ids[:50_000], vocab, dim=8, epochs=1, threshold=1e-2)
    before = small()
    changes = {"tokens": 8, "blocks": 16, "random": 11, "interval": 3_000, "intervals": 20, "hot": 100, "noise": 99}
    for name, value in changes.items():
        found = small(blocks=Blocks(**{name: value}))
        assert np.isfinite(found).all() and (found != before).any() != (name == "hot"), name
    assert (small() == before).all()


def test_bad_arguments(planted):
    ids, vocab = planted
    with pytest.raises(ValueError, match="lr=0, but it must be above 0"):
        shared_negatives.train_blocks(ids, vocab, lr=0)
    with pytest.raises(ValueError, match=f"ids from 0 to {len(vocab)}"):
        shared_negatives.train_blocks(np.append(ids, [0, len(vocab)]), vocab)
    with pytest.raises(ValueError, match="the text has no word of the vocabulary"):
        shared_negatives.train_blocks(np.zeros(9, np.int32), vocab)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 5, 10, 59, 60, 61, 1_000])
def test_interleaved_shards_are_the_pieces_of_the_text_in_turn(n, size):
    shards = blocks.interleave(np.arange(n), size, piece=10)
    pieces = [np.split(shard, range(10, len(shard), 10)) for shard in shards]
    turns = [pieces[i % size][i // size] for i in range(-(-n // 10))]
    assert np.concatenate([np.arange(0), *turns]).tolist() == list(range(n)) and sum(map(len, shards)) == n
    assert np.ptp([len(shard) for shard in shards]) <= 10


@pytest.mark.parametrize("size", [2, 3, 4])
def test_interleaved_shards_keep_equally_many_words(planted, size):
    ids, vocab = planted
    kept = [vocab.keep_probability(1e-3)[shard].sum() for shard in blocks.interleave(np.sort(ids), size)]
    np.testing.assert_allclose(kept, np.mean(kept), rtol=0.02)


# ---- On ranks: real engines, real Horovod


def steps_on_ranks(start, parts, steps):
    """Train this rank's part, one step at a time, and exchange all rows after each: the tables after each exchange."""
    import horovod.tensorflow as hvd

    words = parts[hvd.rank()]
    tables, common = variables(start), variables(start)
    train = shared_negatives.make_train(tables, highest(), SMALL)
    allreduce, found = partial(hvd.allreduce, op=hvd.Sum), []
    exchange = replicas.make_exchange(tables, common, allreduce, combine=lambda total, squares: total)
    for step in range(steps):
        train(words[step : step + 1], LR / 50)
        with exchange(range(V)):
            pass
        found.append([[table.numpy() for table in both] for both in (tables, common)])
    return found


OFTEN = Blocks(interval=10_000, hot=100)


def train_shards(ids, vocab, lengths, changed=SETTINGS, often=OFTEN):
    """Train a shard of so many words on each rank, with an exchange every 10,000 words."""
    import horovod.tensorflow as hvd

    borders = np.cumsum([0, *lengths])
    part = ids[borders[hvd.rank()] : borders[hvd.rank() + 1]]
    return shared_negatives.train_blocks(part, vocab, **changed, hvd=hvd, blocks=often)


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
    exchange = replicas.make_exchange(tables, common, allreduce, replicas.merge_changes)
    train = shared_negatives.make_train(tables, highest(), SMALL)
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
        assert sorted(events[:2]) == ["sum", "training begins"] or events[:2] == ["training begins", "sum"]
        assert events[2:] == ["half", "training ends"]


def combined(changes):
    import horovod.tensorflow as hvd

    own = tf.constant(changes[hvd.rank()])
    squares = tf.reduce_sum(own**2, axis=-1, keepdims=True)
    return replicas.merge_changes(*(hvd.allreduce(part, op=hvd.Sum) for part in (own, squares))).numpy()


def test_equal_changes_are_averaged_and_orthogonal_ones_added(ranks):
    first = np.array([[[3, 0], [2, 1], [1, 0], [0, 0], [1, 1]]] * 2, np.float32)
    second = np.array([[[0, 4], [2, 1], [-1, 1], [0, 0], [0, 0]]] * 2, np.float32)
    expected = [[3, 4], [2, 1], [0, 1], [0, 0], [1, 1]]  # added, averaged, added, nothing, added
    for found in ranks.run(combined, [first, second]):
        np.testing.assert_allclose(found, [expected] * 2, atol=1e-6)


def summed_in_half(values):
    import horovod.tensorflow as hvd

    return replicas.allreduce_in_half(hvd, tf.constant(values) * (hvd.rank() + 1)).numpy()


def test_float16_keeps_three_digits_of_changes_and_of_their_squares(ranks):
    values = np.float32([1e-6, -1e-4, 0.03, -2, 300, 1e-9])
    for found in ranks.run(summed_in_half, values):
        np.testing.assert_allclose(found, 3 * values, rtol=1e-3, atol=1e-9)


def train_with_seldom_exchanges(ids, vocab):
    import horovod.tensorflow as hvd

    seldom = Blocks(hot=1)
    return shared_negatives.train_blocks(ids, vocab, dim=8, epochs=1, threshold=1, hvd=hvd, blocks=seldom)


def test_what_was_never_due_travels_at_the_end(ranks, planted):
    first, second = ranks.run(train_with_seldom_exchanges, *planted)
    start = shared_negatives.block_tables(len(planted[1]), 8, np.random.default_rng(0))[0].numpy()
    assert (first == second).all() and (first[1:] != start[1:]).any(axis=1).all()


@pytest.mark.parametrize("often", [OFTEN, replace(OFTEN, half=True)], ids=["float32", "float16"])
def test_replicas_end_equal_and_as_good_as_one_rank(ranks, planted, often):
    part = len(planted[0]) // 2
    first, second = ranks.run(train_shards, *planted, [part, part], often=often)
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
    assert shard(planted[0], 0, 2).size  # and the ranks live on
    assert len(ranks.run(train_shards, *planted, (3_000, 3_000), SHORT)) == 2
