import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.text.vocab import Vocab

texts = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "UNK"]), min_size=1, max_size=60)
texts_with_words = texts.filter(lambda words: set(words) != {"UNK"})


def some_size(data, words):
    return data.draw(st.integers(2, len(set(words) - {"UNK"}) + 1))


def test_a_text_by_hand():
    vocab = Vocab.build(["the", "cat", "sat", "on", "the", "mat", "the", "cat"], size=4)
    assert vocab.words == ["UNK", "the", "cat", "mat"]  # mat, on, sat count the same: alphabetical
    assert vocab.counts.tolist() == [2, 3, 2, 1] and vocab.counts.dtype == np.int64
    ids = vocab.encode(["the", "dog", "sat", "mat"])
    assert ids.tolist() == [1, 0, 0, 3] and ids.dtype == np.int32
    assert vocab.decode(ids) == ["the", "UNK", "UNK", "mat"]
    assert len(vocab) == 4


@given(texts_with_words, st.data())
def test_ids_by_falling_count_then_alphabetical(words, data):
    vocab = Vocab.build(words, size=some_size(data, words))
    counted = Counter(words)
    order = [(-counted[word], word) for word in vocab.words[1:]]
    assert order == sorted((-n, word) for word, n in counted.items() if word != "UNK")[: len(vocab) - 1]
    assert vocab.counts[1:].tolist() == [counted[word] for word in vocab.words[1:]]


@given(texts_with_words, st.data())
def test_order_of_the_text_does_not_matter(words, data):
    size = some_size(data, words)
    assert Vocab.build(words, size).words == Vocab.build(data.draw(st.permutations(words)), size).words


@given(texts_with_words, st.data())
def test_encode_and_decode_are_inverse_but_for_unk(words, data):
    vocab = Vocab.build(words, size=some_size(data, words))
    ids = vocab.encode(words)
    assert vocab.decode(ids) == [word if word in vocab.words else "UNK" for word in words]
    assert vocab.encode(vocab.decode(ids)).tolist() == ids.tolist()
    assert np.bincount(ids, minlength=len(vocab)).tolist() == vocab.counts.tolist()


@given(texts_with_words, texts, st.data())
def test_counts_merged_from_engines_give_the_same_vocabulary(one, other, data):
    size = some_size(data, one + other)
    merged = Vocab.from_counts(Counter(one) + Counter(other), size)
    whole = Vocab.build(one + other, size)
    assert merged.words == whole.words
    assert merged.counts.tolist() == whole.counts.tolist()


def test_unk_in_the_text_is_the_unknown_word():
    vocab = Vocab.build(["UNK", "UNK", "a", "b", "a"], size=3)
    assert vocab.words == ["UNK", "a", "b"]
    assert vocab.counts.tolist() == [2, 2, 1]
    assert vocab.encode(["UNK"]).tolist() == [0]


def test_nothing_to_encode_or_decode():
    vocab = Vocab.build(["a"], size=2)
    assert vocab.encode([]).shape == (0,)
    assert vocab.decode([]) == []


@pytest.mark.parametrize(
    ("words", "size", "message"),
    [
        ([], 2, "corpus is empty: it has 0 words"),
        ([], None, "corpus is empty"),
        (["UNK", "UNK"], 2, "corpus is empty"),
        (["a", "b"], 1, "size=1, but the smallest vocabulary has 2 rows"),
        (["a", "b"], 0, "size=0"),
        (["a", "b"], -5, "size=-5"),
        (["a", "b"], 4, "size=4, .*only 2 distinct words plus UNK: ask for at most 3"),
    ],
)
def test_a_size_that_no_vocabulary_can_have(words, size, message):
    with pytest.raises(ValueError, match=message):
        Vocab.build(words, size)


@pytest.mark.parametrize("wrong", [-1, 3, 1_000])
def test_decode_refuses_an_id_out_of_range(wrong):
    vocab = Vocab.build(["a", "b"], size=3)
    with pytest.raises(ValueError, match=f"id {wrong} .* 0 to 2"):
        vocab.decode([0, wrong])


def test_keep_probability_is_that_of_word2vec_c():
    vocab = Vocab(["UNK", "often", "seldom"], [100, 899, 1])
    keep = vocab.keep_probability(threshold=0.01)
    as_in_c = (np.sqrt(899 / (0.01 * 1000)) + 1) * (0.01 * 1000) / 899
    assert keep == pytest.approx([np.sqrt(0.1) + 0.1, as_in_c, 1.0], rel=1e-12)
    assert keep.dtype == np.float64


@given(texts_with_words, st.data(), st.floats(1e-6, 1))
def test_keep_probability_falls_with_frequency(words, data, threshold):
    vocab = Vocab.build(words, size=some_size(data, words))
    keep = vocab.keep_probability(threshold)
    assert keep.shape == (len(vocab),) and (keep > 0).all() and (keep <= 1).all()
    assert (np.diff(keep[np.argsort(-vocab.counts)]) >= 0).all()


@pytest.mark.parametrize("threshold", [0, -1e-4])
def test_a_threshold_must_be_positive(threshold):
    with pytest.raises(ValueError, match=f"threshold={threshold}"):
        Vocab.build(["a"], size=2).keep_probability(threshold)


@given(texts_with_words, st.data(), st.floats(0.1, 2))
def test_noise_is_proportional_to_a_power_of_the_counts(words, data, power):
    vocab = Vocab.build(words, size=some_size(data, words))
    noise = vocab.noise(power)
    assert noise.shape == (len(vocab),) and noise.sum() == pytest.approx(1)
    assert noise / noise[1] == pytest.approx((vocab.counts / vocab.counts[1]) ** power)


def test_noise_is_unigram_to_three_quarters_by_default():
    assert Vocab(["UNK", "a"], [1, 16]).noise() == pytest.approx([1 / 9, 8 / 9])


def test_a_vocabulary_travels_to_an_engine():
    vocab = Vocab.build(["a", "b", "b", "c", "c", "c"], size=3)
    copy = pickle.loads(pickle.dumps(vocab))
    assert copy.words == vocab.words and copy.encode(["b", "a"]).tolist() == [2, 0]
    assert copy.counts.tolist() == vocab.counts.tolist()


def test_without_a_size_a_small_corpus_gives_all_its_words():
    assert Vocab.build(["b", "a", "b"]).words == ["UNK", "b", "a"]
    assert len(Vocab.build([f"w{i}" for i in range(60_000)])) == 50_000
