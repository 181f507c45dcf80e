"""Vectors as KeyedVectors, and files that load back equal, as gensim and TensorBoard read them."""

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from gensim.models import KeyedVectors, Word2Vec
from gensim.test.utils import common_texts
from shown import taken

from helpers.word2vec.vectors import load_vectors, to_keyed_vectors

WORDS = ["UNK", "cat", "dog", "car", "voiture"]


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


@pytest.fixture
def keyed(table):
    return to_keyed_vectors(table, WORDS)


def test_rows_get_their_words(table):
    keyed = to_keyed_vectors(tf.Variable(table), WORDS)
    assert keyed.index_to_key == WORDS
    np.testing.assert_array_equal(keyed.vectors, table)
    assert keyed.vectors.dtype == np.float32
    assert keyed.similarity("cat", "dog") == pytest.approx(
        table[1] @ table[2] / np.linalg.norm(table[1]) / np.linalg.norm(table[2]), rel=1e-5
    )


def test_the_table_is_copied(table):
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


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_word2vec_text_loads_back_equal(keyed, tmp_path, name):
    path = tmp_path / "vectors.txt"
    keyed.save_word2vec_format(path)
    assert path.read_text("utf-8").startswith("5 3\nUNK ")
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    for loaded in (load_vectors(tmp_path / name), KeyedVectors.load_word2vec_format(str(path))):
        assert loaded.index_to_key == WORDS
        np.testing.assert_array_equal(loaded.vectors, keyed.vectors)


def test_extreme_floats_load_back_equal(tmp_path):
    vectors = np.array([[1e-38, 3.4e38], [np.float32(0.1), -1 / 3], [1.17549435e-38, 16777217]], np.float32)
    to_keyed_vectors(vectors, ["a", "b", "ü"]).save_word2vec_format(tmp_path / "x.txt")
    np.testing.assert_array_equal(load_vectors(tmp_path / "x.txt").vectors, vectors)
    assert load_vectors(tmp_path / "x.txt").index_to_key == ["a", "b", "ü"]


def test_vectors_of_others(keyed, tmp_path):
    """gensim's text and binary files, and GloVe's, which have no first line."""
    elsewhere = Word2Vec(common_texts, vector_size=4, min_count=1, seed=1, workers=1).wv
    elsewhere.save_word2vec_format(str(tmp_path / "g.txt"))
    elsewhere.save_word2vec_format(str(tmp_path / "g.bin"), binary=True)
    elsewhere.save_word2vec_format(str(tmp_path / "glove.txt"), write_header=False)
    for name in ("g.txt", "g.bin", "glove.txt"):
        loaded = load_vectors(tmp_path / name)
        assert loaded.index_to_key == elsewhere.index_to_key
        np.testing.assert_array_equal(loaded.vectors, elsewhere.vectors)


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
def test_damaged_file(content, tmp_path):
    path = tmp_path / "damaged.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=DAMAGED[content]):
        load_vectors(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*nothing.txt to read vectors from"):
        load_vectors(tmp_path / "nothing.txt")


@pytest.fixture(scope="module")
def save_projector():
    """The function of that name that lesson 26 shows."""
    return taken("26", "save_projector", np=np).save_projector


def test_projector_opens_what_was_written(save_projector, keyed, table, tmp_path):
    """TensorBoard's own plugin, asked for the tensor and the labels as its page asks."""
    from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
    from werkzeug.test import Client

    command = save_projector(keyed, tmp_path / "log", kind=["-", "pet", "pet", "thing", "thing"])
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


def test_projector_with_words_only_has_no_header(save_projector, keyed, tmp_path):
    save_projector(keyed, tmp_path)
    assert (tmp_path / "metadata.tsv").read_text().split() == WORDS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metadata.tsv", "projector_config.pbtxt", "vectors.tsv"]


def test_projector_refuses_labels_of_another_length(save_projector, keyed, tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        save_projector(keyed, tmp_path / "log", topic=["a", "b"])
    assert not (tmp_path / "log").exists()
