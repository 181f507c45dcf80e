"""Encode a text that is too long to be held as words: piece by piece, in several threads, into a file of ids.

    from examples.encode_text import encode_file

    vocab, text = encode_file("wiki.txt")  # or "wiki.txt.gz", or a list of such files
    vectors = train_blocks(text.of(vocab).shard(hvd.rank(), hvd.size()), vocab, hvd=hvd)

What is encoded stays in the cache: after Ctrl-C, or on a disk that was full, the same call goes on where it stopped.
"""

import gzip
import hashlib
import json
import shutil
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
from tqdm import tqdm

from helpers.text.files import CONTROL, LETTERS, cache_folder, only_process, written_whole
from helpers.text.vocab import UNK, Vocab

LAYOUT = 2  # of the files in the cache; a new number makes everybody encode anew
PIECE = 1 << 24  # bytes of text that a thread encodes at a time
ROW = 1_000  # words in a row that a rank takes, as in `interleave` of helpers.word2vec
LOWER_CASE = bytes(range(ord("a"), ord("z") + 1))
BEGIN = 1 << 20  # bytes that are looked at to see whether a file is text


@dataclass(frozen=True)
class LongText:
    """The ids of a text, or of the shard of one rank, in a file of this host: np.int32, read a slice at a time.

    A shard has every size-th piece of 1,000 words; the last pieces, fewer than `size`, and the
    last words that do not fill a piece, are left out.

    Attributes
    ----------
    path : str
        The file of ids.
    words : str
        What `digest` makes of the words whose ids these are.
    content : str
        The SHA-256 of all ids, in hexadecimal: it tells texts apart.
    rank, size : int
        Which of so many shards this is.
    """

    path: str
    words: str
    content: str
    rank: int = 0
    size: int = 1

    def shard(self, rank, size):
        """Return the part of one rank.

        Raises
        ------
        ValueError
            Unless 0 <= rank < size, and for a text of less than 1,000 words a rank.
        """
        part = replace(self, rank=rank, size=size)
        if not 0 <= rank < size or not len(part):
            raise ValueError(
                f"rank={rank}, size={size}: ranks are 0 to size - 1, and each needs {ROW:,} words"
            )
        return part

    def of(self, vocab):
        """Return this text, if its ids are those of a vocabulary.

        Raises
        ------
        ValueError
            If it was encoded with another one: other words, or the same in another order.
        """
        if digest(vocab.words) != self.words:
            raise ValueError(f"{self.path} was encoded with another vocabulary than this {vocab}")
        return self

    def __len__(self):
        rows = Path(self.path).stat().st_size // (ROW * np.dtype(np.int32).itemsize)
        return rows // self.size * ROW

    def __getitem__(self, part):
        """Return the ids of a slice without a step, np.int32 [n]. TypeError for anything else."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError("a LongText is read a slice at a time, without a step")
        start, stop, _ = part.indices(len(self))
        if stop <= start:
            return np.empty(0, np.int32)
        rows = np.memmap(self.path, np.int32, "r", shape=(len(self) // ROW, self.size, ROW))
        first = start // ROW
        last = -(-stop // ROW)
        ids = rows[first:last, self.rank].ravel()
        return ids[start - first * ROW : stop - first * ROW]


def digest(words):
    """Return what tells lists of words apart: the SHA-256 of the words, one a line, in hexadecimal."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def encode_file(path, min_count=5, *, cache_dir=None, progress=True):
    """Encode a text; its words are those of `load_corpus`.

    While it works it needs 8 bytes of the disk for each word, and 4 afterwards, in a folder of the
    cache whose name begins with "long-"; and about 60 bytes of memory for each different word of
    each 16 MB of text: 1 GB for 200 million words. A .gz is unpacked there meanwhile.

    Parameters
    ----------
    path : str, Path or list of them
        Of a plain text or a .gz; of several, one after the other.
    min_count : int
        Words that come less often share id 0.
    cache_dir, progress
        See `load_corpus`.

    Returns
    -------
    tuple of Vocab and LongText

    Raises
    ------
    FileNotFoundError
        For a missing file.
    ValueError
        For a file that is no text, and when no word comes min_count times.
    OSError
        When the disk is full.
    """
    paths = [Path(each) for each in (path if isinstance(path, list | tuple) else [path])]
    for each in paths:
        if not each.is_file():
            raise FileNotFoundError(f"There is no file {each}.")
    files = [(each.resolve(), each.stat().st_size, each.stat().st_mtime_ns) for each in paths]
    name = paths[0].name + f" and {len(paths) - 1} more" * (len(paths) > 1)
    folder = cache_folder(cache_dir) / f"long-{digest([repr((LAYOUT, PIECE, files, min_count))])[:12]}"
    with only_process(folder, f"encode {name}"):
        folder.mkdir(exist_ok=True)
        for part in folder.glob("*.part"):  # of a process that was killed
            part.unlink()
        if not (folder / "vocab.json").exists():
            pieces = _encode_pieces(_plain_texts(paths, folder), folder, name, progress)
            _assemble(pieces, min_count, folder, progress)
        for done in folder.iterdir():
            if done.name not in ("ids", "vocab.json"):
                done.unlink()
    words, counts, content = json.loads((folder / "vocab.json").read_text("utf-8"))
    return Vocab(words, counts), LongText(str(folder / "ids"), digest(words), content)


def _plain_texts(paths, folder):
    """The same texts, those that are packed unpacked. ValueError for what is no text."""
    texts = []
    for number, path in enumerate(paths):
        if path.suffix.lower() == ".gz":
            path = _unpacked(path, folder / f"{number}.text")
        with open(path, "rb") as file:
            begin = file.read(BEGIN)
        if path.suffix.lower() == ".zip" or len(begin.translate(None, CONTROL)) < 0.99 * len(begin):
            raise ValueError(f"{paths[number]} is no plain text and no text in a .gz")
        texts.append(path)
    return texts


def _unpacked(path, target):
    if not target.exists():
        try:
            with gzip.open(path) as packed, written_whole(target, "wb") as out:
                shutil.copyfileobj(packed, out, BEGIN)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{path} is damaged, or no .gz file: {error}") from error
    return target


def _encode_pieces(paths, folder, name, progress):
    """Write all pieces that are not there, in threads; return where they are, in the order of the text."""
    pieces = {}
    for number, path in enumerate(paths):
        for start in range(0, max(path.stat().st_size, 1), PIECE):
            pieces[folder / f"{number}-{start}.npy"] = path
    missing = [piece for piece in pieces if not piece.exists()]
    threads = ThreadPoolExecutor(joblib.cpu_count())  # pyarrow computes without Python's lock
    try:
        futures = [threads.submit(_encode_piece, pieces[piece], piece, PIECE) for piece in missing]
        done = len(pieces) - len(missing)
        counted = {"total": len(pieces), "initial": done}
        for future in _bar(f"encoding {name}", as_completed(futures), progress, **counted):
            future.result()
    finally:
        threads.shutdown(cancel_futures=True)
    return list(pieces)


def _bar(what, pieces, progress, **done):
    megabytes = {"unit": "MB", "unit_scale": PIECE / 1e6}
    return tqdm(
        pieces, what, file=sys.stdout, leave=False, disable=not progress, **megabytes, **done
    )


def _encode_piece(path, target, size):
    """Write which words a piece has, how often each, and the piece itself in numbers of these words."""
    words = _split(_piece(path, int(target.stem.partition("-")[2]), size)).dictionary_encode()
    ids = words.indices.to_numpy()
    known = " ".join(words.dictionary.to_pylist()).encode()
    counts = np.bincount(ids, minlength=len(words.dictionary))
    with written_whole(target, "wb") as file:
        only_write = SimpleNamespace(write=file.write)  # with a file numpy would not say why it cannot write
        for array in (np.frombuffer(known, np.uint8), counts, ids):
            np.save(only_write, array)


def _piece(path, start, size):
    """`size` bytes from `start` on, as letters and blanks. A word belongs to the piece in which it begins."""
    before = min(start, 1)
    with open(path, "rb") as file:
        file.seek(start - before)
        text = file.read(size + before).translate(LETTERS)
        if before:  # the letters up to the first blank belong to a word that begins in the piece before
            text = text.lstrip(LOWER_CASE)
        parts = [text]
        while parts[-1] and not parts[-1].endswith(b" "):
            more = file.read(1_000).translate(LETTERS)
            rest_of_word, blank, _ = more.partition(b" ")
            parts.append(rest_of_word + blank)
    return b"".join(parts)


def _split(text):
    """The words of letters and blanks, bytes, as a pyarrow array."""
    import pyarrow as pa  # here: ranks that read a LongText do without
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
    kinds = words.indices.to_numpy()
    ends = np.cumsum([0, *map(len, counts)])
    counts = np.bincount(kinds, np.concatenate(counts)).astype(np.int64)
    frequent = np.flatnonzero(counts >= min_count)
    if not len(frequent):
        words_in_all = f"its {counts.sum():,} words are too few"
        raise ValueError(f"no word of the text comes {min_count} times: {words_in_all}")
    names = words.dictionary.take(pa.array(frequent)).to_pylist()
    counted = dict(zip(names, counts[frequent].tolist(), strict=True))
    counted[UNK] = int(counts.sum() - counts[frequent].sum())
    vocab = Vocab.from_counts(counted, len(names) + 1)
    ids = np.zeros(len(counts), np.int32)
    ids[frequent] = vocab.encode(names)
    content = hashlib.sha256()
    with written_whole(folder / "ids", "wb") as out:
        for piece, start, stop in zip(_bar("writing ids", pieces, progress), ends, ends[1:]):
            ids_of_piece = ids[kinds[start:stop]]
            words_of_piece = _arrays(piece, 3)[2]
            encoded = ids_of_piece[words_of_piece].tobytes()
            content.update(encoded)
            out.write(encoded)
    with written_whole(folder / "vocab.json") as out:
        out.write(json.dumps([vocab.words, vocab.counts.tolist(), content.hexdigest()]))
