"""Trained vectors as a gensim KeyedVectors, as files in word2vec's text format, and back from files."""

from collections import Counter
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors
from gensim.utils import open as open_any

from helpers.text.files import written_whole


def to_keyed_vectors(vectors, words):
    """A gensim KeyedVectors, float32, that knows row i of `vectors` as `words[i]`.

    vectors: numbers [V, dim], an array or a TensorFlow variable, which is copied. words: V distinct str, the most
    frequent first, for instance `Vocab.words`.
    ValueError for another shape, for words given twice, and for a row with NaN or infinity, or of zeros only (it has
    no direction, and gensim would answer NaN).
    """
    vectors, words = np.array(vectors, np.float32), list(words)
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"vectors of shape {vectors.shape}, but [words, dim] is needed, both at least 1")
    if len(vectors) != len(words):
        raise ValueError(f"{len(vectors):,} vectors for {len(words):,} words: each word needs exactly one")
    word, times = Counter(words).most_common(1)[0]
    if times > 1:
        raise ValueError(f"the word {word!r} is given {times} times: each of the {len(words):,} rows needs its own")
    problems = {"hold NaN or infinity": ~np.isfinite(vectors).all(axis=1), "are all zeros": ~vectors.any(axis=1)}
    for problem, bad in problems.items():
        if bad.any():
            first = f"row {bad.argmax()} ({words[bad.argmax()]!r})"
            raise ValueError(f"{bad.sum():,} of {len(words):,} vectors {problem}, first of them {first}")
    keyed = KeyedVectors(vectors.shape[1])
    keyed.add_vectors(words, vectors)
    return keyed


def save_word2vec(keyed, path):
    """Write a KeyedVectors in word2vec's text format: "words dim", then a line for each word. Exact for float32.

    `load_vectors` and gensim's load_word2vec_format read it. The file appears whole or not at all.
    ValueError for a word with a blank in it, because blanks separate the columns.
    """
    for word in keyed.index_to_key:
        if not word or any(blank in word for blank in " \t\n\r"):
            raise ValueError(f"{word!r} cannot be written: it is empty or has a blank that separates columns or lines")
    with written_whole(path) as file:
        file.write(f"{len(keyed)} {keyed.vector_size}\n")
        for word, row in zip(keyed.index_to_key, keyed.vectors, strict=True):
            file.write(f"{word} {' '.join(map(str, row))}\n")


def load_vectors(path):
    """Vectors trained anywhere as a KeyedVectors: word2vec's text format, with or without its first line (GloVe's files
    have none), also as .gz; its binary format if the name ends in .bin.

    FileNotFoundError for a missing file, ValueError for one with other content, and as for `to_keyed_vectors`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} to read vectors from")
    try:
        with open_any(path, "rb") as file:
            columns = len(file.readline().split())
        binary = path.suffix == ".bin"
        keyed = KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=not binary and columns > 2)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} does not hold vectors in word2vec's format: {error}") from error
    return to_keyed_vectors(keyed.vectors, keyed.index_to_key)
