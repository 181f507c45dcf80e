"""Trained vectors: checked, scored against people's judgement, exported, and read from elsewhere."""

import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors
from gensim.test.utils import datapath
from gensim.utils import open as open_any

from helpers.corpus import planted_twin

PAIR_SETS = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}  # gensim ships them, as test data
ANALOGY_SET = "questions-words.txt"
ANALOGY_WORDS = 15_000  # answers are looked for among so many of the most frequent words
PROJECTOR_CONFIG = """embeddings {
  tensor_name: "word2vec"
  tensor_path: "vectors.tsv"
  metadata_path: "metadata.tsv"
}
"""


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
    if len(set(words)) < len(words):
        word, times = Counter(words).most_common(1)[0]
        raise ValueError(f"the word {word!r} is given {times} times: each of the {len(words):,} rows needs its own")
    _check_rows(~np.isfinite(vectors).all(axis=1), words, "hold NaN or infinity")
    _check_rows(~vectors.any(axis=1), words, "are all zeros")
    keyed = KeyedVectors(vectors.shape[1])
    keyed.add_vectors(words, vectors)
    return keyed


def _check_rows(bad, words, what):
    rows = np.flatnonzero(bad)
    if len(rows):
        first = f"row {rows[0]} ({words[rows[0]]!r})"
        raise ValueError(f"{len(rows):,} of {len(words):,} vectors {what}, first of them {first}")


def neighbours(keyed, word, n=10):
    """The `n` words nearest to `word`, by falling cosine: list of (str, float).

    ValueError for a word that is not in the vocabulary and for `n` below 1.
    """
    if word not in keyed:
        raise ValueError(f"{word!r} is not among the {len(keyed):,} words of these vectors")
    if n < 1:
        raise ValueError(f"n={n}, but at least 1 neighbour must be asked for")
    return keyed.most_similar(word, topn=n)


# ---- Scores ---------------------------------------------------------------------------------------------------------


def scores(keyed):
    """How well a KeyedVectors agrees with people: a dict of floats, each with its coverage.

    wordsim353, simlex999: Spearman's rank correlation between cosines and the judgement of people, -1 to 1.
    WordSim-353 rates relatedness (Finkelstein et al., 2002), SimLex-999 similarity proper (Hill et al., 2015).
    analogy: the share of "a is to b as c is to ?" answered exactly among the first 15,000 words (Mikolov et al., 2013).
    <name>_coverage: the share of the pairs or questions whose words are all in the vocabulary; the others are left out.
    A score is None where fewer than two pairs, or no question, are covered.
    """
    found = {}
    for name, file in PAIR_SETS.items():
        covered, total = _covered(datapath(file), 2, keyed.index_to_key)
        usable = len(covered) > 1
        found[name] = float(keyed.evaluate_word_pairs(datapath(file))[1].statistic) if usable else None
        found[f"{name}_coverage"] = len(covered) / total
    sections = analogies(keyed)
    right, asked, total = (sum(column) for column in zip(*sections.values(), strict=True))
    return {**found, "analogy": right / asked if asked else None, "analogy_coverage": asked / total}


def twins_found(vectors, words):
    """The share of planted content words whose nearest content word, by cosine, is their twin."""
    content = [i for i, word in enumerate(words) if word.startswith("t")]
    unit = vectors[content] / np.linalg.norm(vectors[content], axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    names = [words[i] for i in content]
    return float(np.mean([planted_twin(name) == names[i] for name, i in zip(names, cosines.argmax(1), strict=True)]))


def analogies(keyed, restrict=ANALOGY_WORDS):
    """The analogy questions by section: dict, name -> (answered right, covered by the vocabulary, in the file).

    The answer is the word with the largest cosine to b - a + c, of vectors of length 1, among the first `restrict`
    words, a, b and c left out ("3CosAdd"). The same as gensim's evaluate_word_analogies, in matrix products.
    """
    index = {word.upper(): i for i, word in reversed(list(enumerate(keyed.index_to_key[:restrict])))}
    unit = keyed.vectors[:restrict] / np.linalg.norm(keyed.vectors[:restrict], axis=1, keepdims=True)
    found = {}
    for section, questions in _sections(datapath(ANALOGY_SET)).items():
        covered = np.array([[index[w] for w in q] for q in questions if all(w in index for w in q)], int).reshape(-1, 4)
        found[section] = (_answered(unit, covered), len(covered), len(questions))
    return found


def _answered(unit, questions):
    right = 0
    for some in np.array_split(questions, len(questions) // 256 + 1):
        a, b, c, expected = some.T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
        np.put_along_axis(cosines, some[:, :3], -np.inf, axis=1)
        right += int((cosines.argmax(axis=1) == expected).sum())
    return right


def _sections(path):
    """Section -> list of questions, each a list of 4 words in upper case."""
    found = {}
    for line in Path(path).read_text("utf-8").splitlines():
        if line.startswith(":"):
            section = found.setdefault(line[1:].strip(), [])
        else:
            section.append(line.upper().split())
    return found


def _covered(path, n, words):
    """(the lines of a file whose first `n` words are all among `words`, the number of its lines)."""
    known = {word.upper() for word in words}
    text = Path(path).read_text("utf-8").upper()
    lines = [line.split()[:n] for line in text.splitlines() if line and not line.startswith("#")]
    return [line for line in lines if known.issuperset(line)], len(lines)


# ---- Files ----------------------------------------------------------------------------------------------------------


def save_word2vec(keyed, path):
    """Write a KeyedVectors in word2vec's text format: "words dim", then a line for each word. Exact for float32.

    `load_vectors` and gensim's load_word2vec_format read it. The file appears whole or not at all.
    ValueError for a word with a blank in it, because blanks separate the columns.
    """
    _check_writable(keyed.index_to_key)
    with _whole(path) as file:
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
        binary = path.suffix == ".bin"
        with open_any(str(path), "rb") as file:
            first = file.readline().split()
        if not first:
            raise ValueError("its first line is empty")
        headless = not binary and len(first) != 2
        keyed = KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=headless)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} does not hold vectors in word2vec's format: {error}") from error
    return to_keyed_vectors(keyed.vectors, keyed.index_to_key)


def save_projector(keyed, folder, **labels):
    """Write the three files of TensorBoard's projector into `folder`; returns the command that opens them.

    labels: more columns beside the word, to colour by or to search in, each V str: `topic=[...]`.
    TensorBoard listens on this machine only, unless it is told otherwise.
    ValueError for a word or a label with a tab or a line break in it, and for labels of another length.
    """
    columns = {"word": keyed.index_to_key, **labels}
    for name, column in columns.items():
        if len(column) != len(keyed):
            raise ValueError(f"{len(column):,} labels {name!r} for {len(keyed):,} words: each word needs exactly one")
        _check_writable(column, "\t\n\r")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = zip(*columns.values(), strict=True)
    header = ["\t".join(columns)] if labels else []  # a file with a single column must not have one
    with _whole(folder / "vectors.tsv") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in keyed.vectors)
    with _whole(folder / "metadata.tsv") as file:
        file.writelines(line + "\n" for line in [*header, *map("\t".join, rows)])
    with _whole(folder / "projector_config.pbtxt") as file:
        file.write(PROJECTOR_CONFIG)
    return f"tensorboard --logdir {folder}"


def _check_writable(words, blanks=" \t\n\r"):
    for word in words:
        if not word or any(blank in word for blank in blanks):
            raise ValueError(f"{word!r} cannot be written: it is empty or has a blank that separates columns or lines")


@contextmanager
def _whole(path):
    """A text file to write, which takes its place at `path` only when it is complete."""
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
