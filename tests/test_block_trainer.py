"""The block trainer against plain loops over pairs, in one process; tests/test_merging.py has ranks."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from helpers.text.corpus import load_corpus
from helpers.text.skipgram import pairs_within
from helpers.text.vocab import Vocab
from helpers.word2vec import block_trainer, blocks
from helpers.word2vec.blocks import Blocks
from helpers.word2vec.scores import twins_found

V, DIM, WINDOW, NEGATIVES, LR = 30, 6, 3, 5, 0.1
SMALL = Blocks(window=WINDOW, negatives=NEGATIVES)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_tables(seed, scale=0.5, v=V, dim=DIM):
    """What make_train starts from: the row of UNK is 0."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(0, scale, (v, dim)).astype(np.float32) for _ in range(2)]
    for table in tables:
        table[0] = 0
    return tables


def highest(v=V):
    """Bounds that some rows reach and others do not; UNK learns nothing."""
    rates = np.linspace(0.02, 0.2, 2 * v).reshape(v, 2).T
    rates[:, 0] = 0
    return [tf.constant(row, tf.float32) for row in rates]


def blocks_of(n, seed, noise=None, settings=SMALL, v=V):
    """A text of n random words, cut as one part: (text, words)."""
    rng = np.random.default_rng(seed)
    text = rng.integers(1, v, n).astype(np.int32)
    noise = rng.integers(1, v, (100, settings.random)) if noise is None else noise
    return text, blocks.cut_blocks(blocks.pad_text(text, settings), 0, 1, noise, rng, settings)


def in_text_order(array):
    return array.swapaxes(0, 1).reshape(-1, array.shape[-1])


def variables(arrays):
    return [tf.Variable(array) for array in arrays]


def trained(start, words, lr=LR, settings=SMALL):
    tables = variables(start)
    loss = block_trainer.make_train(tables, highest(len(start[0])), settings)(words, lr)
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
        loss = block_trainer.block_loss(*rows, labels, weights) * tf.reduce_sum(weights * labels)
    found = block_trainer.block_changes(*rows, labels, weights, tf.fill([2, 7], LR), tf.fill([2, 9], LR))
    for change, gradient in zip(found, tape.gradient(loss, rows), strict=True):
        np.testing.assert_allclose(change, -LR * gradient, atol=1e-6)


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


def planted_text():
    """(ids, vocab)."""
    words = load_corpus("planted", n_words=200_000).words
    vocab = Vocab.build(words, size=len(set(words)) + 1)
    return vocab.encode(words), vocab


@pytest.fixture(scope="module")
def planted():
    return planted_text()


SETTINGS = {"dim": 32, "epochs": 10, "lr": 0.05, "threshold": 1e-2}


def test_training_finds_the_twins_and_reports(planted):
    seen = []
    vectors = block_trainer.train_blocks(*planted, **SETTINGS, report=lambda *row: seen.append(row))
    assert vectors.shape == (len(planted[1]), 32) and vectors.dtype == np.float32
    assert twins_found(vectors, planted[1].words) > 0.8
    intervals = 10 * SMALL.intervals  # of 20,000 words
    assert [row[:2] for row in seen] == [(step, intervals) for step in range(intervals + 1)]
    assert seen[1][2] == pytest.approx(6 * np.log(2), abs=0.01)  # 6 questions for each pair, all rows still 0
    assert seen[-1][2] < 2.5 and seen[-1][3] > 0


def test_a_seed_repeats_training_and_another_one_does_not(planted):
    ids, vocab = planted
    first, again, other = (
        block_trainer.train_blocks(ids[:20_000], vocab, dim=8, epochs=1, seed=seed) for seed in (0, 0, 1)
    )
    assert (first == again).all() and (first != other).any()


def test_every_hyper_parameter_has_an_effect_and_stays_within_the_call(planted):
    """`hot` only changes what is exchanged, so nothing in one process."""
    ids, vocab = planted
    small = partial(block_trainer.train_blocks, ids[:50_000], vocab, dim=8, epochs=1, threshold=1e-2)
    before = small()
    changes = {"tokens": 8, "blocks": 16, "random": 11, "interval": 3_000, "intervals": 20, "hot": 100, "noise": 99}
    for name, value in changes.items():
        found = small(blocks=Blocks(**{name: value}))
        assert np.isfinite(found).all() and (found != before).any() != (name == "hot"), name
    assert (small() == before).all()


class Sliced:
    """A text of which one can only ask the length and slices; `seen`: the length of each."""

    def __init__(self, ids):
        self.ids, self.seen = ids, []

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, part):
        assert isinstance(part, slice) and part.step is None
        self.seen.append(len(self.ids[part]))
        return self.ids[part]


def test_a_text_in_memory_in_a_file_and_of_slices_gives_the_same_vectors(planted, tmp_path):
    ids, vocab = planted
    ids = np.where(ids % 7 == 3, 0, ids)[:20_000]  # some words are unknown
    ids.tofile(tmp_path / "ids")
    sliced = Sliced(ids.astype(np.int64))
    few = Blocks(interval=1_000, at_once=4)  # 18 intervals, 5 parts
    texts = ids, np.memmap(tmp_path / "ids", np.int32, "r"), sliced
    found = [block_trainer.train_blocks(text, vocab, dim=8, epochs=1, blocks=few) for text in texts]
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all() and np.ptp(found[0]) > 0.1
    assert sliced.seen[0] == len(ids) and max(sliced.seen[1:]) <= 4_500  # looked through once, then parts


@pytest.mark.parametrize("at_once", [3, 50])
def test_an_epoch_has_every_known_word_once_however_many_intervals_are_in_memory(planted, at_once):
    ids, vocab = planted
    keep, noise = np.ones(len(vocab), np.float32), np.ones((100, 22), np.int32)
    few = Blocks(at_once=at_once)
    source = blocks.next_blocks(ids, keep, 10, noise, [0], few)
    words = [next(source)[0][..., few.window : few.window + few.tokens] for _ in range(10)]
    counts = sum(np.bincount(part.ravel(), minlength=len(vocab)) for part in words)
    assert (counts[1:] == np.bincount(ids, minlength=len(vocab))[1:]).all()


@pytest.mark.parametrize("first", [0, 3, 4, 9, 10, 17])
def test_who_begins_later_gets_the_same_blocks_and_reads_only_these(planted, first):
    ids, vocab = planted
    keep, noise = np.full(len(vocab), 0.5, np.float32), np.random.default_rng(0).integers(1, 9, (100, 22))
    few, text = Blocks(at_once=4), Sliced(ids[:50_000])
    whole = blocks.next_blocks(text, keep, 10, noise, [0], few)
    expected = [next(whole) for _ in range(20)]
    text.seen.clear()
    found = blocks.next_blocks(text, keep, 10, noise, [0], few, first)
    for words, pairs in expected[first:]:
        again, as_many = next(found)
        assert (again == words).all() and as_many == pairs
    assert sum(text.seen) <= (20 - first + 4) * 5_000


def test_known_words_are_counted_a_part_at_a_time(planted, monkeypatch):
    monkeypatch.setattr(blocks, "READ_AT_ONCE", 10)
    ids = np.arange(95) % 5
    assert blocks.count_known(ids, planted[1]) == 76 and blocks.count_known([], planted[1]) == 0
    for wrong in (-1, 2**31, 2**40 + 1):  # also what would be a word in 32 bits
        with pytest.raises(ValueError, match=f"ids from .*{wrong}"):
            blocks.count_known(np.append(ids, wrong), planted[1])


def test_the_functions_that_a_lesson_may_change_are_those_that_run(planted):
    """The other two take part in an exchange: see below."""
    ids, vocab = planted

    def no_changes(centers, contexts, *rest):
        return tf.zeros_like(centers), tf.zeros_like(contexts)

    vectors = block_trainer.train_blocks(ids[:9_000], vocab, dim=8, epochs=1, block_changes=no_changes)
    start, _ = block_trainer.block_tables(len(vocab), 8, seed=0)
    assert (vectors[1:] == start[1:]).all()


def test_bad_arguments(planted):
    ids, vocab = planted
    with pytest.raises(ValueError, match="lr=0, but it must be above 0"):
        block_trainer.train_blocks(ids, vocab, lr=0)
    with pytest.raises(ValueError, match=f"ids from 0 to {len(vocab)}"):
        block_trainer.train_blocks(np.append(ids, [0, len(vocab)]), vocab)
    with pytest.raises(ValueError, match="the text has no word of the vocabulary"):
        block_trainer.train_blocks(np.zeros(9, np.int32), vocab)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_interleaved_shards_are_the_pieces_of_the_text_in_turn_with_equally_many_words(planted, size):
    for n in (0, 5, 10, 59, 60, 61, 1_000):
        shards = blocks.interleave(np.arange(n), size, piece=10)
        pieces = [np.split(shard, range(10, len(shard), 10)) for shard in shards]
        turns = [pieces[i % size][i // size] for i in range(-(-n // 10))]
        assert np.concatenate([np.arange(0), *turns]).tolist() == list(range(n)) and sum(map(len, shards)) == n
        assert np.ptp([len(shard) for shard in shards]) <= 10
    ids, vocab = planted
    kept = [vocab.keep_probability(1e-3)[shard].sum() for shard in blocks.interleave(np.sort(ids), size)]
    np.testing.assert_allclose(kept, np.mean(kept), rtol=0.02)
