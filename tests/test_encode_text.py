"""encode_file: the ids that words in memory get, piece by piece, also when it is stopped or the disk is full."""

import gzip
import itertools
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import encode_text
from examples.encode_text import encode_file
from helpers.text import Vocab, load_corpus
from helpers.word2vec import interleave


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The path of a text with capitals, punctuation and several lines, and its words."""
    path = tmp_path_factory.mktemp("text") / "a long text.txt"
    letters = str.maketrans("0123456789", "ghijklmnop")
    lines = " ".join(load_corpus("planted", n_words=100_000).words).translate(letters).replace("a ", "A,\n")
    path.write_text(lines)
    return path, load_corpus(path).words


@pytest.fixture(scope="module")
def encoded(text, tmp_path_factory):
    """(Vocab, LongText) of all its words, from pieces in several threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode_text, "PIECE", 50_000)
        return encode_file(text[0], 1, cache_dir=tmp_path_factory.mktemp("cache"), progress=False)


def test_pieces_in_threads_give_what_words_in_memory_give(text, encoded):
    (_, words), (vocab, ids) = text, encoded
    known = Vocab.build(words)
    assert vocab.words == known.words and (vocab.counts == known.counts).all()
    assert len(ids) == len(words) // 1000 * 1000
    assert (ids[:] == known.encode(words)[: len(ids)]).all()
    assert sorted(file.name for file in Path(ids.path).parent.iterdir()) == ["ids", "vocab.json"]


def test_rare_words_share_id_0_and_a_second_call_reads_what_is_there(text, tmp_path):
    path, words = text
    least = sorted(Vocab.build(words).counts[1:])[50]
    written = set()
    for _ in range(2):
        vocab, ids = encode_file(path, int(least), cache_dir=tmp_path, progress=False)
        written.add(Path(ids.path).stat().st_mtime_ns)
    assert len(written) == 1
    assert vocab.counts[1:].min() >= least and vocab.counts[0] > 0 and vocab.counts.sum() == len(words)
    assert (ids[:] == vocab.encode(words)[: len(ids)]).all()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_shard_is_an_interleaved_one(encoded, size):
    _, ids = encoded
    whole = ids[: len(ids) // (1000 * size) * 1000 * size]
    for rank, expected in enumerate(interleave(whole, size)):
        shard = ids.shard(rank, size)
        assert len(shard) == len(expected) and (shard[:] == expected).all()
        assert (shard[1234:5678] == expected[1234:5678]).all() and len(shard[len(shard) :]) == 0


@given(st.text("ab ,\n", max_size=300), st.integers(1, 40))
@example("a" * 3_000 + " b", 7)
def test_each_word_is_in_one_piece(tmp_path_factory, content, size):
    path = tmp_path_factory.getbasetemp() / "pieces.txt"
    path.write_text(content)
    words = [encode_text._piece(path, start, size).decode().split() for start in range(0, len(content), size)]
    assert sum(words, []) == content.replace(",", " ").split()


def test_after_ctrl_c_it_goes_on_where_it_stopped(text, tmp_path, monkeypatch):
    encode, numbers, done = encode_text._encode_piece, itertools.count(), set()

    def interrupted(*piece):
        if next(numbers) >= 4:
            raise KeyboardInterrupt
        encode(*piece)

    monkeypatch.setattr(encode_text, "PIECE", 5_000)
    monkeypatch.setattr(encode_text, "_encode_piece", interrupted)
    with pytest.raises(KeyboardInterrupt):
        encode_file(text[0], cache_dir=tmp_path, progress=False)
    kept = {*tmp_path.glob("*/*.npy")}
    monkeypatch.setattr(encode_text, "_encode_piece", lambda *piece: done.add(piece[1]) or encode(*piece))
    vocab, ids = encode_file(text[0], cache_dir=tmp_path, progress=False)
    assert len(kept) == 4 and kept.isdisjoint(done)
    assert len(kept) + len(done) == -(-text[0].stat().st_size // 5_000)
    assert (ids[:] == vocab.encode(text[1])[: len(ids)]).all()


def test_a_slice_is_that_of_the_array_and_nothing_else_is_answered(encoded):
    _, ids = encoded
    whole = ids[:]
    for part in (slice(5, 3), slice(1_500, 1_200), slice(-7, None), slice(None, -1), slice(2_999, 3_001)):
        assert (ids[part] == whole[part]).all() and len(ids[part]) == len(whole[part])
    for part in (0, slice(None, None, 2)):
        with pytest.raises(TypeError, match="a slice at a time, without a step"):
            ids[part]
    for rank, size in ((-1, 2), (2, 2), (0, 10_000)):
        with pytest.raises(ValueError, match=f"rank={rank}, size={size}"):
            ids.shard(rank, size)


@contextmanager
def largest_file(size):
    """The system lets this process write no file beyond so many bytes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing_that_is_done(text, tmp_path, monkeypatch):
    for piece, room, kept in ((encode_text.PIECE, 300_000, set()), (100_000, 200_000, {".npy"})):
        monkeypatch.setattr(encode_text, "PIECE", piece)  # the first is the whole text: its ids are 400,000 bytes
        with largest_file(room), pytest.raises(OSError, match="File too large"):
            encode_file(text[0], cache_dir=tmp_path, progress=False)
        assert {file.suffix for file in tmp_path.glob("long-*/*")} == kept
    assert len(encode_file(text[0], cache_dir=tmp_path, progress=False)[1]) == len(text[1]) // 1000 * 1000


def test_what_cannot_be_encoded(text, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file nowhere.txt"):
        encode_file("nowhere.txt", cache_dir=tmp_path)
    for name, content in ("empty.txt", ""), ("rare.txt", "once upon a time"):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match="no word of the text comes 5 times"):
            encode_file(tmp_path / name, cache_dir=tmp_path, progress=False)
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"a text " * 100)[:-20])
    (tmp_path / "no text.txt").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "packed.zip").write_bytes(b"PK")
    sentences = {"broken.gz": "is damaged", "no text.txt": "is no plain text", "packed.zip": "is no plain text"}
    for name, sentence in sentences.items():
        with pytest.raises(ValueError, match=f"{name} {sentence}"):
            encode_file([text[0], tmp_path / name], cache_dir=tmp_path, progress=False)


def test_several_files_also_packed_ones_are_one_text(text, encoded, tmp_path, monkeypatch):
    monkeypatch.setattr(encode_text, "PIECE", 30_000)
    whole = text[0].read_bytes()
    middle = whole.index(b"\n", len(whole) // 2)
    (tmp_path / "one.txt").write_bytes(whole[:middle])
    (tmp_path / "two.txt.gz").write_bytes(gzip.compress(whole[middle:]))
    vocab, ids = encode_file([tmp_path / "one.txt", tmp_path / "two.txt.gz"], 1, cache_dir=tmp_path, progress=False)
    assert vocab.words == encoded[0].words and ids.content == encoded[1].content
    assert sorted(file.name for file in Path(ids.path).parent.iterdir()) == ["ids", "vocab.json"]
    (tmp_path / "one.txt").write_bytes(whole[:middle].replace(b"A", b"x", 1))
    other = encode_file([tmp_path / "one.txt", tmp_path / "two.txt.gz"], 1, cache_dir=tmp_path, progress=False)[1]
    assert other.path != ids.path and other.content != ids.content


def test_a_text_is_refused_with_another_vocabulary_also_of_the_same_size(encoded):
    vocab, ids = encoded
    assert ids.of(Vocab(vocab.words, vocab.counts)) is ids
    UNK, first, second, *rest = vocab.words
    for words in ([UNK, second, first, *rest], vocab.words[:-1]):
        for part in (ids, ids.shard(0, 2)):
            with pytest.raises(ValueError, match="encoded with another vocabulary than this Vocab"):
                part.of(Vocab(words, vocab.counts[: len(words)]))
