"""The pieces of notebook 14, taken from its cells: F1 of slots, clipping, buckets, counts, masks."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown import taken
from sklearn.metrics import f1_score

LETTERS = {".": "O", "K": "B-KEY", "k": "I-KEY", "T": "B-TYPE", "t": "I-TYPE"}
SEQEVAL = [  # sentences of tags, right and found, and the F1 that seqeval 1.2.2 gives for them
    ("K.tk ....kTK. TTKK", "...K ...KkTK. TTKT", 0.666667),
    (".KTtK kkTK k..KK..", ".KTtK k.Tt k..KK..", 0.705882),
    ("t KTT. K.", "t KTTK K.", 0.909091),
    ("K.tkT KT kK.K", "KKtkT KK kK..", 0.777778),
    (". t Tt.", ". t Tt.", 1.0),
    ("kt.k. kkk. kk.t", ".t.k. kk.. Kkkt", 0.545455),
    ("k .k.T.KK tKkT.ttK", "k .kKt.KK KKkT.tkK", 0.727273),
    ("tKkk T. ..t.Kk", "KKtk T. .Tt.KK", 0.153846),
    (".t.t T TkTKTk", ".t.K K TkT.T.", 0.625),
    ("t.KK.tKT kTkKKkkT K", "t.KK.TKT ktT.kkT. .", 0.666667),
    ("...kT .T... .K..", ".t.tT .T... .T..", 0.444444),
]


@pytest.fixture(scope="module")
def slots():
    return taken("14", "spans slot_f1", np=np)


@pytest.fixture(scope="module")
def training():
    """What makes a step, with TensorFlow."""
    from functools import partial

    import tensorflow as tf

    names = "TOKENS crossentropy compiled_step joint_loss masked_loss text_batches MASK DIM"
    return taken("14", names, np=np, tf=tf, partial=partial, layers=tf.keras.layers, vocab=range(50))


def tags(letters):
    return [[LETTERS[letter] for letter in sentence] for sentence in letters.split()]


# ---- F1 of the slots


@pytest.mark.parametrize(("right", "found", "f1"), SEQEVAL)
def test_slot_f1_is_that_of_seqeval(slots, right, found, f1):
    assert slots.slot_f1(tags(right), tags(found)) == pytest.approx(f1, abs=1e-6)


SENTENCES = st.lists(st.tuples(st.text(".KkTt", min_size=6, max_size=6), st.text(".KkTt", min_size=6, max_size=6)),
                     min_size=1, max_size=5)  # fmt: skip


@given(SENTENCES)
def test_slot_f1_is_that_of_scikit_learn_over_spans(slots, sentences):
    right, found = ([tags(pair[side])[0] for pair in sentences] for side in (0, 1))
    marked = [{(i, *span) for i, sentence in enumerate(some) for span in slots.spans(sentence)}
              for some in (right, found)]  # fmt: skip
    everything = sorted(marked[0] | marked[1])
    truth, answer = ([span in some for span in everything] for some in marked)
    expected = f1_score(truth, answer, zero_division=0) if everything else 0
    assert slots.slot_f1(right, found) == pytest.approx(expected)


def test_spans_know_where_one_value_ends_and_the_next_begins(slots):
    assert slots.spans(tags("KkK.Tt")[0]) == {(0, 2, "KEY"), (2, 3, "KEY"), (4, 6, "TYPE")}
    assert slots.spans(tags(".kt")[0]) == {(1, 2, "KEY"), (2, 3, "TYPE")}  # an I without a B begins one


# ---- a step: averaging, clipping, counts


class OtherRank:
    """Stands in for horovod.tensorflow on rank 0 of two: the other rank always brings the same gradient or number."""

    def __init__(self, brings):
        self.brings = brings

    def grouped_allreduce(self, gradients):
        return [(gradient + self.brings) / 2 for gradient in gradients]


def moved(training, brings=None, **clip):
    """How far a step of gradient descent, lr 1, moves two weights whose gradient on this rank is (6, 8)."""
    import tensorflow as tf

    weight = tf.keras.Variable(tf.zeros(2))
    step = training.compiled_step(
        lambda batch: tf.reduce_sum(batch * weight.value), [weight], tf.keras.optimizers.SGD(1.0),
        [tf.TensorSpec([2])], hvd=None if brings is None else OtherRank(brings), **clip,
    )  # fmt: skip
    step(tf.constant([6.0, 8.0]))
    return -weight.numpy()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [6, 8]),
        ({"brings": [0.6, -0.8]}, [3.3, 3.6]),
        ({"clip_after": 1.0}, [0.6, 0.8]),
        ({"brings": [0.6, -0.8], "clip_after": 1.0}, [0.6757246, 0.7371541]),
        ({"brings": [0.6, -0.8], "clip_before": 1.0}, [0.6, 0]),
        ({"brings": [-6.0, -8.0], "clip_after": 1.0}, [0, 0]),
        ({"brings": [0.6, -0.8], "clip_after": 100.0}, [3.3, 3.6]),
    ],
    ids=str,
)
def test_a_step_averages_and_clips_in_that_order(training, options, expected):
    assert moved(training, **options) == pytest.approx(expected, abs=1e-5)


def test_with_the_average_count_the_gradients_of_uneven_ranks_average_to_that_of_all(training):
    import tensorflow as tf

    rng = np.random.default_rng(0)
    weights = tf.Variable(rng.normal(size=[5, 4]), dtype=tf.float32)  # logits of 4 intents or tags for 5 tokens
    ids = np.array([[1, 2, 0, 0], [1, 3, 4, 2]])  # 1 word beside [CLS], and 3
    batch = ids, np.array([0, 2]), rng.integers(0, 4, ids.shape)

    def gradient(rows, average):
        def model(some):
            logits = tf.gather(weights, some)
            return logits[:, 1], logits

        with tf.GradientTape() as tape:
            loss = training.joint_loss(model, average, *(side[rows] for side in batch))
        return tf.convert_to_tensor(tape.gradient(loss, weights)).numpy()

    whole = gradient(slice(2), tf.identity)
    halves = slice(0, 1), slice(1, 2)
    counted = np.mean([gradient(half, lambda count: 2.0) for half in halves], axis=0)  # the mean of 1 and 3
    alone = np.mean([gradient(half, tf.identity) for half in halves], axis=0)
    assert np.abs(counted - whole).max() < 1e-6 < 1e-3 < np.abs(alone - whole).max()


def test_the_encoder_cannot_see_the_words_it_guesses(training):
    import tensorflow as tf

    seen = []

    def encoder(ids):
        seen.append(ids.numpy())
        return tf.zeros([*ids.shape, training.DIM])

    encoder.words = SimpleNamespace(embeddings=SimpleNamespace(value=tf.zeros([53, training.DIM])))
    docs = np.random.default_rng(0).integers(0, 50, 500).astype(np.int32)
    ids, places = next(training.text_batches(docs, np.random.default_rng(1), n=8))
    training.masked_loss(encoder, tf.identity, np.zeros(53, np.float32), tf.constant(ids), tf.constant(places))
    hidden = np.zeros(ids.shape, bool)
    np.put_along_axis(hidden, places, True, axis=1)
    assert ids.shape == (8, 20) and (hidden.sum(1) == 4).all() and not hidden[:, 0].any()
    assert (seen[0][hidden] == training.MASK).all() and (seen[0][~hidden] == ids[~hidden]).all()
    text = [" ".join(map(str, row[1:] - 3)) for row in ids]
    assert all(row in " ".join(map(str, docs)) for row in text)


# ---- buckets


@pytest.fixture(scope="module")
def dates():
    """The batches of dates, on made-up lengths with the three buckets mixed."""
    lengths = np.random.default_rng(0).choice([7, 9, 24, 35], size=4_000)
    x = (np.arange(36) < lengths[:, None]).astype(np.int32)
    y = np.arange(4_000)[:, None]  # each row tells its number
    names = "BUCKETS date_batches padded_batches sources tokens_of_steps"
    return taken("14", names, np=np, x=x, y=y, lengths=lengths)


def drawn(dates, name, rank, n=60):
    source = dates.sources(rank, 2)[name]
    return [next(source) for _ in range(n)]


@pytest.mark.parametrize("name", ["sorted file", "own bucket", "same bucket"])
def test_a_batch_comes_from_one_bucket_and_loses_no_token(dates, name):
    for x, y in drawn(dates, name, rank=0):
        lengths, width = dates.lengths[y[:, 0]], x.shape[1]
        smaller = max([0, *(bound for bound in dates.BUCKETS if bound < width)])
        assert width in dates.BUCKETS and (smaller < lengths).all() and (x.sum(1) == lengths).all()


def test_ranks_share_the_bucket_and_not_the_dates(dates):
    first, second = (drawn(dates, "same bucket", rank) for rank in (0, 1))
    assert [len(x[0]) for x, _ in first] == [len(x[0]) for x, _ in second]
    rows = [{int(row) for _, y in batches for row in y[:, 0]} for batches in (first, second)]
    assert not rows[0] & rows[1] and len(rows[0]) > 1_000
    assert {x.shape[1] for x, _ in first} == set(dates.BUCKETS)


def test_only_the_same_bucket_and_padding_keep_lengths_equal(dates):
    tokens = {name: dates.tokens_of_steps(name, steps=50) for name in dates.sources(0, 2)}
    apart = {name: (n[:, 0] != n[:, 1]).mean() for name, n in tokens.items()}
    assert apart["same bucket"] == apart["all padded"] == 0 < min(apart["own bucket"], apart["sorted file"])
    assert (tokens["all padded"] == 46).all() and tokens["same bucket"].mean() < 40
