"""A text that is too long to be held as words: encoded piece by piece, in several threads, into a file of ids.

What is encoded stays in the cache: after Ctrl-C, or on a disk that was full, the same call goes on where it stopped.
"""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
from tqdm import tqdm

from helpers.text.files import CONTROL, LETTERS, cache_folder, only_process, written_whole
from helpers.text.vocab import UNK, Vocab

LAYOUT = 1  # of the files in the cache; a new number makes everybody encode anew
PIECE = 1 << 24  # bytes of text that a thread encodes at a time
ROW = 1_000  # words in a row that a rank takes, see `interleave` of helpers.word2vec


@dataclass(frozen=True)
class LongText:
    """The ids of a text, or of the shard of one rank, in a file of this host: np.int32, read a slice at a time.

    A shard has every size-th piece of 1,000 words; the last pieces, fewer than `size`, and the last words that do not
    fill a piece, are left out. vocab_size: of the vocabulary whose ids these are.
    """

    path: str
    vocab_size: int
    rank: int = 0
    size: int = 1

    def shard(self, rank, size):
        """The part of this rank. ValueError unless 0 <= rank < size, and for a text of less than 1,000 words a rank."""
        part = replace(self, rank=rank, size=size)
        if not 0 <= rank < size or not len(part):
            raise ValueError(f"rank={rank}, size={size}: ranks are 0 to size - 1, and each needs {ROW:,} words")
        return part

    def of(self, vocab):
        """This text. ValueError if it was encoded with another vocabulary."""
        if len(vocab) != self.vocab_size:
            raise ValueError(f"the text has ids of {self.vocab_size:,} words, and the vocabulary has {len(vocab):,}")
        return self

    def __len__(self):
        return Path(self.path).stat().st_size // (4 * ROW * self.size) * ROW

    def __getitem__(self, part):
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError("a LongText is read a slice at a time, without a step")
        start, stop, _ = part.indices(len(self))
        if stop <= start:
            return np.empty(0, np.int32)
        first, rows = start // ROW, np.memmap(self.path, np.int32, "r", shape=(len(self) // ROW, self.size, ROW))
        return rows[first : -(-stop // ROW), self.rank].ravel()[start - first * ROW :][: stop - start]


def known_parts(ids, intervals, at_once):
    """A text whole, or a LongText in parts of at most so many intervals: (words without UNK, intervals) of each.

    An array is one of `known_words`: it has no UNK.
    """
    if not isinstance(ids, LongText):
        yield ids, intervals
        return
    ends = np.linspace(0, intervals, -(-intervals // at_once) + 1).astype(int)
    edges = ends * len(ids) // intervals
    for start, stop, count in zip(edges, edges[1:], np.diff(ends)):
        part = ids[start:stop]
        yield part[part > 0], count


def encode_file(path, min_count=5, *, cache_dir=None, progress=True):
    """(Vocab, LongText) of a file of plain text; words are those of `load_corpus`.

    min_count: words that come less often share id 0. cache_dir, progress: see `load_corpus`. While it works it needs
    8 bytes of the disk for each word, and 4 afterwards, in a folder of the cache whose name begins with "long-"; and
    about 60 bytes of memory for each different word of each 16 MB of text: 1 GB for 200 million words.
    Raises FileNotFoundError for a missing file, ValueError for one that is no plain text and when no word comes
    min_count times, OSError when the disk is full.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with open(path, "rb") as file:
        begin = file.read(1 << 20)
    if path.suffix.lower() in (".gz", ".zip") or len(begin.translate(None, CONTROL)) < 0.99 * len(begin):
        raise ValueError(f"{path} is no plain text: unpack it first, or use load_corpus")
    known = LAYOUT, PIECE, path.resolve(), path.stat().st_size, path.stat().st_mtime_ns, min_count
    folder = cache_folder(cache_dir) / f"long-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}"
    with only_process(folder, f"encode {path.name}"):
        folder.mkdir(exist_ok=True)
        for part in folder.glob("*.part"):  # of a process that was killed
            part.unlink()
        pieces = [folder / f"{start}.npy" for start in range(0, max(path.stat().st_size, 1), PIECE)]
        if not (folder / "vocab.json").exists():
            _encode_pieces(path, pieces, progress)
            _assemble(pieces, min_count, folder, progress)
        for piece in pieces:
            piece.unlink(missing_ok=True)
    vocab = Vocab(*json.loads((folder / "vocab.json").read_text("utf-8")))
    return vocab, LongText(str(folder / "ids"), len(vocab))


def _encode_pieces(path, pieces, progress):
    missing = [piece for piece in pieces if not piece.exists()]
    threads = ThreadPoolExecutor(joblib.cpu_count())  # pyarrow computes without Python's lock
    try:
        encoded = as_completed([threads.submit(_encode_piece, path, piece, PIECE) for piece in missing])
        done = len(pieces) - len(missing)
        for future in _bar(f"encoding {path.name}", encoded, progress, total=len(pieces), initial=done):
            future.result()
    finally:
        threads.shutdown(cancel_futures=True)


def _bar(what, pieces, progress, **done):
    look = {"unit": "MB", "unit_scale": PIECE / 1e6, "file": sys.stdout, "leave": False, "disable": not progress}
    return tqdm(pieces, what, **done, **look)


def _encode_piece(path, target, size):
    """Write which words a piece has, how often each, and the piece itself in numbers of these words."""
    words = _split(_piece(path, int(target.stem), size)).dictionary_encode()
    ids = words.indices.to_numpy()
    known = " ".join(words.dictionary.to_pylist()).encode()
    with written_whole(target, "wb") as file:
        for array in (np.frombuffer(known, np.uint8), np.bincount(ids, minlength=len(words.dictionary)), ids):
            np.save(SimpleNamespace(write=file.write), array)  # numpy's own way would not say why it cannot write


def _piece(path, start, size):
    """`size` bytes from `start` on, as letters and blanks. A word belongs to the piece in which it begins."""
    before = min(start, 1)
    with open(path, "rb") as file:
        file.seek(start - before)
        text = file.read(size + before).translate(LETTERS)
        text = text[text.find(b" ") if b" " in text else len(text) :] if before else text
        parts = [text]
        while parts[-1] and parts[-1][-1:] != b" " and (more := file.read(1_000).translate(LETTERS)):
            parts.append(more.partition(b" ")[0] + b" " * (b" " in more))
    return b"".join(parts)


def _split(text):
    """The words of letters and blanks, bytes, as a pyarrow array. (Ranks read a LongText without loading pyarrow.)"""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = [text.strip().decode()] if text.strip() else []
    return pc.ascii_split_whitespace(pa.array(whole, pa.large_string())).flatten()


def _arrays(piece, n):
    """The first n arrays of a piece."""
    with open(piece, "rb") as file:
        return [np.load(file) for _ in range(n)]


def _assemble(pieces, min_count, folder, progress):
    """From the pieces to one file of ids and a vocabulary."""
    import pyarrow as pa

    known, counts = zip(*(_arrays(piece, 2) for piece in pieces), strict=True)
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
        for piece, start, stop in zip(_bar("writing ids", pieces, progress), ends, ends[1:]):
            out.write(ids[kinds[start:stop]][_arrays(piece, 3)[2]].tobytes())
    with written_whole(folder / "vocab.json") as out:
        out.write(json.dumps([vocab.words, vocab.counts.tolist()]))
