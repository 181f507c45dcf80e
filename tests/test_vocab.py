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
    assert len(vocab) == 4 and vocab.encode([]).shape == (0,) and vocab.decode([]) == []


@given(texts_with_words, st.data())
def test_ids_by_falling_count_then_alphabetical(words, data):
    vocab = Vocab.build(words, size=some_size(data, words))
    counted = Counter(words)
    order = [(-counted[word], word) for word in vocab.words[1:]]
    assert order == sorted((-n, word) for word, n in counted.items() if word != "UNK")[: len(vocab) - 1]
    assert vocab.counts[1:].tolist() == [counted[word] for word in vocab.words[1:]]


@given(texts_with_words, st.data())
def test_encode_and_decode_are_inverse_but_for_unk(words, data):
    vocab = Vocab.build(words, size=some_size(data, words))
    ids = vocab.encode(words)
    assert vocab.decode(ids) == [word if word in vocab.words else "UNK" for word in words]
    assert vocab.encode(vocab.decode(ids)).tolist() == ids.tolist()
    assert np.bincount(ids, minlength=len(vocab)).tolist() == vocab.counts.tolist()


def test_without_a_size_a_small_corpus_gives_all_its_words():
    assert Vocab.build(["b", "a", "b"]).words == ["UNK", "b", "a"]
    assert len(Vocab.build([f"w{i}" for i in range(60_000)])) == 50_000


def test_keep_probability_is_that_of_word2vec_c():
    keep = Vocab(["UNK", "often", "seldom"], [100, 899, 1]).keep_probability(threshold=0.01)
    as_in_c = (np.sqrt(899 / (0.01 * 1000)) + 1) * (0.01 * 1000) / 899
    assert keep == pytest.approx([np.sqrt(0.1) + 0.1, as_in_c, 1.0], rel=1e-12)
    assert keep.dtype == np.float64
    assert 0 < Vocab(["UNK", "a"], [0, 9]).keep_probability()[0] <= 1


def test_noise_is_proportional_to_a_power_of_the_counts():
    assert Vocab(["UNK", "a"], [1, 16]).noise() == pytest.approx([1 / 9, 8 / 9])
    assert Vocab(["UNK", "a", "b"], [0, 9, 4]).noise(0.5) == pytest.approx([0, 3 / 5, 2 / 5])


EMPTY = "corpus is empty: it has 0 words"
SMALL = Vocab.build(["a", "b"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Vocab.build([], 2), EMPTY),
        (lambda: Vocab.build([]), EMPTY),
        (lambda: Vocab.build(["UNK", "UNK"], 2), EMPTY),
        *[(lambda size=size: Vocab.build(["a", "b"], size), f"size={size}, but the smallest") for size in (1, 0, -5)],
        (lambda: Vocab.build(["a", "b"], 4), "size=4, .*only 2 distinct words plus UNK: ask for at most 3"),
        *[(lambda wrong=wrong: SMALL.decode([0, wrong]), f"id {wrong} .* 0 to 2") for wrong in (-1, 3, 1_000)],
        *[(lambda low=low: SMALL.keep_probability(low), f"threshold={low}") for low in (0, -1e-4)],
    ],
)
def test_what_no_vocabulary_can_do(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
