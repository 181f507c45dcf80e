"""A text that is too long to be held as words: encoded piece by piece, in several threads, into a file of ids.

What is encoded stays in the cache: after Ctrl-C, or on a disk that was full, the same call goes on where it stopped.
"""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from tqdm import tqdm

from helpers.text.files import LETTERS, cache_folder, only_process, written_whole
from helpers.text.vocab import UNK, Vocab

PIECE = 1 << 24  # bytes of text that a thread encodes at a time
ROW = 1_000  # words in a row that a rank takes, see `interleave` of helpers.word2vec


@dataclass(frozen=True)
class LongText:
    """The ids of a text, or of the shard of one rank, in a file of this host: np.int32, read a slice at a time.

    A shard has every size-th piece of 1,000 words; the last pieces, fewer than `size`, are left out.
    """

    path: str
    rank: int = 0
    size: int = 1

    def shard(self, rank, size):
        return LongText(self.path, rank, size)

    def __len__(self):
        return Path(self.path).stat().st_size // (4 * ROW * self.size) * ROW

    def __getitem__(self, part):
        start, stop, _ = part.indices(len(self))
        first, rows = start // ROW, np.memmap(self.path, np.int32, "r", shape=(len(self) // ROW, self.size, ROW))
        return rows[first : -(-stop // ROW), self.rank].ravel()[start - first * ROW :][: stop - start]


def known_parts(ids, intervals, at_once):
    """A text whole, or a LongText in parts of at most so many intervals: (words without UNK, intervals) of each."""
    parts = -(-intervals // at_once) if isinstance(ids, LongText) else 1
    edges, ends = (np.linspace(0, n, parts + 1).astype(int) for n in (len(ids), intervals))
    for start, stop, count in zip(edges, edges[1:], np.diff(ends)):
        part = ids[start:stop]
        yield part[part > 0], count


def encode_file(path, min_count=5, *, cache_dir=None, progress=True):
    """(Vocab, LongText) of a plain text file of any length; words are those of `load_corpus`.

    min_count: words that come less often share id 0. cache_dir, progress: see `load_corpus`. While it works it needs
    8 bytes of the disk for each word, and 4 afterwards.
    Raises FileNotFoundError for a missing file, ValueError when no word comes min_count times, OSError when the disk
    is full.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    known = path.resolve(), path.stat().st_size, path.stat().st_mtime_ns, min_count
    folder = cache_folder(cache_dir) / f"long-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}"
    with only_process(folder, f"encode {path.name}"):
        folder.mkdir(exist_ok=True)
        if not (folder / "vocab.json").exists():
            pieces = [folder / f"{start}.npy" for start in range(0, max(path.stat().st_size, 1), PIECE)]
            _encode_pieces(path, pieces, progress)
            _assemble(pieces, min_count, folder, progress)
    return Vocab(*json.loads((folder / "vocab.json").read_text("utf-8"))), LongText(str(folder / "ids"))


def _encode_pieces(path, pieces, progress):
    missing = [piece for piece in pieces if not piece.exists()]
    threads = ThreadPoolExecutor(joblib.cpu_count())  # pyarrow computes without Python's lock
    try:
        encoded = as_completed([threads.submit(_encode_piece, path, piece, PIECE) for piece in missing])
        for piece in _bar(f"encoding {path.name}", encoded, pieces, len(missing), progress):
            piece.result()
    finally:
        threads.shutdown(cancel_futures=True)


def _bar(what, steps, pieces, left, progress):
    look = {"unit": "MB", "unit_scale": PIECE / 1e6, "file": sys.stdout, "leave": False, "disable": not progress}
    return tqdm(steps, what, len(pieces), initial=len(pieces) - left, **look)


def _encode_piece(path, target, size):
    """Write which words a piece has, how often each, and the piece itself in numbers of these words."""
    words = _split(_piece(path, int(target.stem), size)).dictionary_encode()
    ids = words.indices.to_numpy()
    known = " ".join(words.dictionary.to_pylist()).encode()
    with written_whole(target, "wb") as file:
        for array in (np.frombuffer(known, np.uint8), np.bincount(ids, minlength=len(words.dictionary)), ids):
            np.save(file, array)


def _piece(path, start, size):
    """`size` bytes from `start` on, as letters and blanks. A word belongs to the piece in which it begins."""
    before = min(start, 1)
    with open(path, "rb") as file:
        file.seek(start - before)
        text = file.read(size + before).translate(LETTERS)
        text = text[text.find(b" ") if b" " in text else len(text) :] if before else text
        while text and text[-1:] != b" " and (more := file.read(64).translate(LETTERS)):
            text += more.partition(b" ")[0] + b" " * (b" " in more)
    return text


def _split(text):
    """The words of letters and blanks, bytes, as a pyarrow array. (Ranks read a LongText without loading pyarrow.)"""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.ascii_split_whitespace(pa.array([text.strip().decode()] if text.strip() else [], pa.string())).flatten()


def _arrays(piece):
    with open(piece, "rb") as file:
        return [np.load(file) for _ in range(3)]


def _assemble(pieces, min_count, folder, progress):
    """From the pieces to one file of ids and a vocabulary."""
    import pyarrow as pa

    known, counts = zip(*(_arrays(piece)[:2] for piece in pieces), strict=True)
    words = pa.concat_arrays([_split(each.tobytes()) for each in known]).dictionary_encode()
    kinds, ends = words.indices.to_numpy(), np.cumsum([0, *map(len, counts)])
    counts = np.bincount(kinds, np.concatenate(counts)).astype(np.int64)
    frequent = np.flatnonzero(counts >= min_count)
    if not len(frequent):
        raise ValueError(f"no word of the text comes {min_count} times: its {counts.sum():,} words are too few")
    names = words.dictionary.take(pa.array(frequent)).to_pylist()
    rare = {UNK: int(counts.sum() - counts[frequent].sum())}
    vocab = Vocab.from_counts(rare | dict(zip(names, counts[frequent].tolist(), strict=True)), len(names) + 1)
    ids = np.zeros(len(counts), np.int32)
    ids[frequent] = vocab.encode(names)
    with written_whole(folder / "ids", "wb") as out:
        for piece, start, stop in zip(_bar("writing ids", pieces, pieces, len(pieces), progress), ends, ends[1:]):
            out.write(ids[kinds[start:stop]][_arrays(piece)[2]].tobytes())
    with written_whole(folder / "vocab.json") as out:
        out.write(json.dumps([vocab.words, vocab.counts.tolist()]))
    for piece in pieces:
        piece.unlink()
