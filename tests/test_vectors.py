"""Vectors as KeyedVectors, and files that load back equal, as gensim and TensorBoard read them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from shown import taken

from helpers.word2vec.vectors import load_vectors, to_keyed_vectors

WORDS = ["UNK", "cat", "dog", "car", "voiture"]


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def test_rows_get_their_words_and_are_copied(table):
    keyed = to_keyed_vectors(tf.Variable(table), WORDS)
    assert keyed.index_to_key == WORDS and keyed.vectors.dtype == np.float32
    np.testing.assert_array_equal(keyed.vectors, table)
    keyed = to_keyed_vectors(table, WORDS)
    table[:] = 0
    assert keyed.vectors.any()


def with_row(value, row=2):
    vectors = np.ones((5, 3))
    vectors[row] = value
    return vectors


@pytest.mark.parametrize(
    ("vectors", "words", "message"),
    [
        (np.ones(5), WORDS, r"shape \(5,\), but \[words, dim\] is needed"),
        (np.ones((5, 3, 2)), WORDS, r"shape \(5, 3, 2\)"),
        (np.ones((0, 3)), [], r"shape \(0, 3\)"),
        (np.ones((4, 3)), WORDS, "^4 vectors for 5 words: "),
        (np.ones((5, 3)), ["a", "b", "c", "b", "d"], "the word 'b' is given 2 times"),
        (with_row([0, np.nan, 0]), WORDS, r"^1 of 5 vectors hold NaN or infinity, first of them row 2 \('dog'\)$"),
        (with_row([0, -np.inf, 0], slice(3, 5)), WORDS, r"^2 of 5 .* NaN or infinity, first of them row 3 \('car'\)$"),
        (with_row(0), WORDS, r"^1 of 5 vectors are all zeros, first of them row 2 \('dog'\)$"),
    ],
)
def test_bad_vectors(vectors, words, message):
    with pytest.raises(ValueError, match=message):
        to_keyed_vectors(vectors, words)


def test_files_of_others_load_equal_to_the_last_bit(tmp_path):
    """Text as gensim writes it, also packed and binary, and as GloVe does, which has no first line."""
    vectors = np.array([[1e-38, 3.4e38], [np.float32(0.1), -1 / 3], [1.17549435e-38, 16777217]], np.float32)
    written = to_keyed_vectors(vectors, ["a", "b", "ü"])
    for name in ("a.txt", "a.txt.gz", "a.bin", "glove.txt"):
        path = tmp_path / name
        written.save_word2vec_format(str(path), binary=path.suffix == ".bin", write_header=name != "glove.txt")
        loaded = load_vectors(path)
        assert loaded.index_to_key == ["a", "b", "ü"]
        np.testing.assert_array_equal(loaded.vectors, vectors)


NO_VECTORS = "damaged.txt does not hold vectors in word2vec's format: "
DAMAGED = {
    b"": NO_VECTORS,
    b"2 3\ncat 1 2 3\n": NO_VECTORS,
    b"2 3\ncat 1 2 x\ndog 1 2 3\n": NO_VECTORS,
    b"\xff\xfe\x00\n": NO_VECTORS,
    b"a b c\n": NO_VECTORS,
    b"2 2\ncat 1 nan\ndog 1 2\n": r"1 of 2 vectors hold NaN or infinity, first of them row 0 \('cat'\)",
}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_and_a_missing_file_are_refused(content, tmp_path):
    path = tmp_path / "damaged.txt"
    with pytest.raises(FileNotFoundError, match="there is no file .*damaged.txt to read vectors from"):
        load_vectors(path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=DAMAGED[content]):
        load_vectors(path)


@pytest.fixture(scope="module")
def save_projector():
    """The function of that name that lesson 26 shows."""
    return taken("26", "save_projector", np=np).save_projector


def test_projector_opens_what_was_written(save_projector, table, tmp_path):
    """TensorBoard's own plugin, asked for the tensor and the labels as its page asks."""
    from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
    from werkzeug.test import Client

    kinds = ["-", "pet", "pet", "thing", "thing"]
    command = save_projector(to_keyed_vectors(table, WORDS), tmp_path / "log", kind=kinds)
    assert command == f"tensorboard --logdir {tmp_path / 'log'}"
    plugin = ProjectorPlugin(SimpleNamespace(logdir=str(tmp_path / "log"), data_provider=None, multiplexer=None))
    apps = plugin.get_plugin_apps()

    def ask(route):
        answer = Client(apps[route]).get("/?run=.&name=word2vec")
        assert answer.status_code == 200, answer.text
        return answer

    assert json.loads(ask("/info").text)["embeddings"][0]["tensorShape"] == [5, 3]
    np.testing.assert_array_equal(np.frombuffer(ask("/tensor").data, np.float32).reshape(5, 3), table)
    assert ask("/metadata").text.splitlines()[:2] == ["word\tkind", "UNK\t-"]


def test_words_alone_have_no_header_and_labels_of_another_length_are_refused(save_projector, table, tmp_path):
    keyed = to_keyed_vectors(table, WORDS)
    save_projector(keyed, tmp_path)
    assert (tmp_path / "metadata.tsv").read_text().split() == WORDS
    with pytest.raises(ValueError, match="shorter"):
        save_projector(keyed, tmp_path / "log", topic=["a", "b"])
    assert not (tmp_path / "log").exists()
