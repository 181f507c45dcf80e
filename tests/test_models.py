"""Functions of lessons 28, 29 and 30 whose mistakes the lessons would not notice: Adasum, F1, masks, buckets."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from shown import taken

from lesson_parts.commands import slot_f1

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
    ("...kT .T... .K..", ".t.tT .T... .T..", 0.444444),
]


def test_adasum_averages_what_points_the_same_way_and_adds_nothing_to_zero():
    adasum = taken("28", "adasum", tf=tf).adasum
    a = tf.constant([[1.0, -2.0], [3.0, 5.0]])
    assert np.allclose(adasum(a, 3 * a), 2 * a)
    assert np.allclose(adasum(a, tf.zeros_like(a)), a)


@pytest.mark.parametrize(("right", "found", "f1"), SEQEVAL)
def test_slot_f1_is_that_of_seqeval(right, found, f1):
    def tags(letters):
        return [[LETTERS[letter] for letter in sentence] for sentence in letters.split()]

    assert slot_f1(tags(right), tags(found)) == pytest.approx(f1, abs=1e-6)


def test_the_encoder_cannot_see_the_words_it_guesses():
    training = taken("30", "crossentropy hide masked_loss text_batches MASK DIM", np=np, tf=tf)
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
    assert (hidden.sum(1) == 4).all() and not hidden[:, 0].any()
    assert (seen[0][hidden] == training.MASK).all() and (seen[0][~hidden] == ids[~hidden]).all()


def test_a_batch_comes_from_one_bucket_and_loses_no_token_and_ranks_share_no_date():
    lengths = np.random.default_rng(0).choice([7, 9, 24, 35], size=4_000)
    x = (np.arange(36) < lengths[:, None]).astype(np.int32)
    y = np.arange(4_000)[:, None]  # each row tells its number
    dates = taken("29", "BUCKETS date_batches padded_batches sources", np=np, x=x, y=y, lengths=lengths)
    rows = [set(), set()]
    for rank in (0, 1):
        batches = dates.sources(rank, 2)["same bucket"]
        for batch, numbers in (next(batches) for _ in range(60)):
            width = batch.shape[1]
            smaller = max([0, *(bound for bound in dates.BUCKETS if bound < width)])
            assert width in dates.BUCKETS and (smaller < lengths[numbers[:, 0]]).all()
            assert (batch.sum(1) == lengths[numbers[:, 0]]).all()
            rows[rank].update(numbers[:, 0].tolist())
    assert not rows[0] & rows[1] and len(rows[0]) > 1_000
