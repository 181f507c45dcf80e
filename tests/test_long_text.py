"""helpers.text.long_text: the ids that words in memory would get, piece by piece, also when it is stopped or full."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_for

from helpers.text import Vocab, encode_file, load_corpus, long_text
from helpers.word2vec import Blocks, blocks, interleave, train_blocks

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = """
from helpers.text import encode_file, long_text
long_text.PIECE = 500
encode_file({path!r}, cache_dir={cache!r}, progress=False)
"""


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
        patch.setattr(long_text, "PIECE", 50_000)
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
    for _ in range(2):
        vocab, ids = encode_file(path, int(least), cache_dir=tmp_path, progress=False)
        written = Path(ids.path).stat().st_mtime_ns
    assert Path(ids.path).stat().st_mtime_ns == written
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
def test_each_word_is_in_one_piece(tmp_path_factory, content, size):
    path = tmp_path_factory.getbasetemp() / "pieces.txt"
    path.write_text(content)
    words = [long_text._piece(path, start, size).decode().split() for start in range(0, len(content), size)]
    assert sum(words, []) == content.replace(",", " ").split()


def test_after_ctrl_c_it_goes_on_where_it_stopped(text, tmp_path, monkeypatch):
    code = INTERRUPTED.format(path=str(text[0]), cache=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)
    wait_for(lambda: len(list(tmp_path.glob("*/*.npy"))) > 2)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1].decode() and process.returncode
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*/*.npy")}
    monkeypatch.setattr(long_text, "PIECE", 500)
    folder = next(path for path in tmp_path.glob("long-*") if path.is_dir())
    pieces = [folder / f"{start}.npy" for start in range(0, text[0].stat().st_size, 500)]
    long_text._encode_pieces(text[0], pieces, False)
    assert 2 < len(kept) < len(pieces) and all(piece.exists() for piece in pieces)
    assert {piece: piece.stat().st_mtime_ns for piece in kept} == kept


def test_a_full_disk_loses_nothing_that_is_done(text, tmp_path, monkeypatch):
    """The largest file that this process may write stands for the disk: the system refuses what is beyond."""
    monkeypatch.setattr(long_text, "PIECE", 100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            encode_file(text[0], cache_dir=tmp_path, progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert {file.suffix for file in tmp_path.glob("long-*/*")} == {".npy"}
    assert len(encode_file(text[0], cache_dir=tmp_path, progress=False)[1]) == len(text[1]) // 1000 * 1000


def test_what_cannot_be_encoded(text, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file nowhere.txt"):
        encode_file("nowhere.txt", cache_dir=tmp_path)
    for name, content in ("empty.txt", ""), ("rare.txt", "once upon a time"):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match="no word of the text comes 5 times"):
            encode_file(tmp_path / name, cache_dir=tmp_path, progress=False)


def test_not_even_a_piece_can_be_written(text, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            encode_file(text[0], cache_dir=tmp_path, progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.glob("long-*/*")) == []


def test_training_reads_the_file_as_it_would_the_array(encoded):
    vocab, ids = encoded
    few = Blocks(interval=4_000, at_once=100)
    one, other = (train_blocks(text, vocab, dim=8, epochs=1, blocks=few) for text in (ids, ids[:]))
    assert (one == other).all() and np.ptp(one) > 0.1


def test_an_epoch_has_every_word_once_however_many_intervals_are_in_memory(encoded):
    vocab, ids = encoded
    known, keep, noise = ids[:], np.ones(len(vocab), np.float32), np.ones((100, 22), np.int32)
    for at_once in (3, 50):
        few = Blocks(at_once=at_once)
        source = blocks.next_blocks(ids, keep, 10, noise, np.random.default_rng(0), few)
        words = [next(source)[0][..., few.window : few.window + few.tokens] for _ in range(10)]
        counts = sum(np.bincount(part.ravel(), minlength=len(vocab)) for part in words)
        assert (counts[1:] == np.bincount(known, minlength=len(vocab))[1:]).all()
