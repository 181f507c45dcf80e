"""Vectors as gensim's KeyedVectors, as files in word2vec's text format, and back from files."""

from collections import Counter
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors
from gensim.utils import open as open_any


def to_keyed_vectors(vectors, words):
    """Make gensim's KeyedVectors, which know row i of `vectors` as `words[i]`.

    Parameters
    ----------
    vectors : numbers [V, dim]
        An array or a TensorFlow variable; it is copied.
    words : V distinct str
        The most frequent first, for instance `Vocab.words`.

    Returns
    -------
    gensim.models.KeyedVectors
        Of np.float32.

    Raises
    ------
    ValueError
        For another shape, for words given twice, and for a row with NaN or infinity, or of zeros
        only (it has no direction, and gensim would answer NaN).
    """
    vectors = np.array(vectors, np.float32)
    words = list(words)
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"vectors of shape {vectors.shape}, but [words, dim] is needed, both at least 1")
    if len(vectors) != len(words):
        raise ValueError(f"{len(vectors):,} vectors for {len(words):,} words: each word needs exactly one")
    word, times = Counter(words).most_common(1)[0]
    if times > 1:
        rows = f"each of the {len(words):,} rows needs its own"
        raise ValueError(f"the word {word!r} is given {times} times: {rows}")
    problems = {
        "hold NaN or infinity": ~np.isfinite(vectors).all(axis=1),
        "are all zeros": ~vectors.any(axis=1),
    }
    for problem, bad in problems.items():
        if bad.any():
            some = f"{bad.sum():,} of {len(words):,} vectors"
            first = f"row {bad.argmax()} ({words[bad.argmax()]!r})"
            raise ValueError(f"{some} {problem}, first of them {first}")
    keyed = KeyedVectors(vectors.shape[1])
    keyed.add_vectors(words, vectors)
    return keyed


def load_vectors(path):
    """Read vectors that were trained anywhere.

    Parameters
    ----------
    path : str or Path
        Of a file in word2vec's text format, with or without its first line (GloVe's files have
        none), also as .gz; or in its binary format if the name ends in .bin.

    Returns
    -------
    gensim.models.KeyedVectors

    Raises
    ------
    FileNotFoundError
        For a missing file.
    ValueError
        For one with other content, and as for `to_keyed_vectors`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} to read vectors from")
    try:
        with open_any(path, "rb") as file:
            columns = len(file.readline().split())
        binary = path.suffix == ".bin"
        headless = not binary and columns > 2
        keyed = KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=headless)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} does not hold vectors in word2vec's format: {error}") from error
    return to_keyed_vectors(keyed.vectors, keyed.index_to_key)
