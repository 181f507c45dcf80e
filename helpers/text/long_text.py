"""A text that is too long to be held as words: several processes encode it, piece by piece, into a file of ids.

What is encoded stays in the cache: after Ctrl-C, or on a disk that was full, the same call goes on where it stopped.
As a program, `python -m helpers.text.long_text TEXT SIZE PIECE...`, it is one of the processes.
"""

import contextlib
import gc
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import count as counter
from pathlib import Path

import joblib
import numpy as np
from tqdm import tqdm

from helpers.text.files import LETTERS, cache_folder, only_process, written_whole
from helpers.text.vocab import Vocab

PIECE = 1 << 25  # bytes of text that a process encodes before it saves
CHUNK = 1 << 22  # bytes of text that it holds as words
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
    """A text, int [n] or LongText, in parts of at most so many intervals: (words without UNK, intervals) of each."""
    parts = -(-intervals // at_once)
    edges, ends = (np.linspace(0, n, parts + 1).astype(int) for n in (len(ids), intervals))
    for start, stop, count in zip(edges, edges[1:], np.diff(ends)):
        part = ids[start:stop]
        yield part[part > 0], count


def encode_file(path, min_count=5, *, cache_dir=None, progress=True):
    """(Vocab, LongText) of a plain text file of any length; words are those of `load_corpus`.

    min_count: words that come less often share id 0. cache_dir, progress: see `load_corpus`. Needs 12 bytes of the
    disk for each word while it works, and 4 afterwards.
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
            _assemble(_encode_pieces(path, folder, progress), min_count, folder, progress)
    return Vocab(*json.loads((folder / "vocab.json").read_text("utf-8"))), LongText(str(folder / "ids"))


def _encode_pieces(path, folder, progress):
    """The files of all pieces, in order."""
    files = [folder / f"{start}.npy" for start in range(0, path.stat().st_size, PIECE)]
    missing = [str(file) for file in files if not file.exists()]
    n = min(joblib.cpu_count(), len(missing))
    command, (said, children_say) = [sys.executable, "-m", __name__, str(path.resolve()), str(PIECE)], os.pipe()
    where = {"cwd": Path(__file__).parents[2], "stdout": children_say, "start_new_session": True}  # deaf to Ctrl-C
    with contextlib.ExitStack() as undo, open(said) as lines, _bar(f"encoding {path.name}", files, progress) as bar:
        children = [undo.enter_context(subprocess.Popen([*command, *missing[i::n]], **where)) for i in range(n)]
        for child in children:
            undo.callback(child.kill)
        os.close(children_say)
        bar.update(len(files) - len(missing))
        for line in lines:
            if line != "done\n":
                raise OSError(f"{path} cannot be encoded: {line.strip()}")
            bar.update()
        if any(child.wait() for child in children):
            raise OSError(f"{path} cannot be encoded: a process that does it was killed")
    return files


def _bar(what, files, progress):
    scale = {"unit": "MB", "unit_scale": PIECE / 1e6}
    return tqdm(desc=what, total=len(files), file=sys.stdout, leave=False, disable=not progress, **scale)


def _encode_piece(path, target, size):
    """Write the words of a piece, their numbers, and the piece in ids of its own."""
    index, parts, stop = defaultdict(counter().__next__), [], int(target.stem) + size
    for start in range(int(target.stem), stop, CHUNK):
        words = _chunk(path, start, min(CHUNK, stop - start)).split()
        parts.append(np.fromiter(map(index.__getitem__, words), np.int32, len(words)))
    ids = np.concatenate(parts)
    with written_whole(target, "wb") as file:
        for array in (np.frombuffer(b" ".join(index), np.uint8), np.bincount(ids), ids):
            np.save(file, array)


def _names(file):
    """The words of a piece that is open for reading."""
    return np.load(file).tobytes().decode().split()


def _chunk(path, start, size):
    """`size` bytes from `start` on, as letters and blanks. A word belongs to the chunk in which it begins."""
    before = min(start, 1)
    with open(path, "rb") as file:
        file.seek(start - before)
        text = file.read(size + before).translate(LETTERS)
        text = text[text.find(b" ") if b" " in text else len(text) :] if before else text
        while text and text[-1:] != b" " and (more := file.read(64).translate(LETTERS)):
            text += more.partition(b" ")[0] + b" " * (b" " in more)
    return text


def _assemble(files, min_count, folder, progress):
    """From the pieces to one file of ids and a vocabulary."""
    counts = Counter()
    for path in files:
        with open(path, "rb") as file:
            counts.update(dict(zip(_names(file), np.load(file).tolist(), strict=True)))
    frequent = sum(number >= min_count for number in counts.values())
    if not frequent:
        raise ValueError(f"no word of the text comes {min_count} times: its {counts.total():,} words are too few")
    vocab = Vocab.from_counts(counts, frequent + 1)
    with written_whole(folder / "ids", "wb") as out, _bar("writing ids", files, progress) as bar:
        for path in files:
            bar.update()
            with open(path, "rb") as file:
                ids, _, piece = vocab.encode(_names(file)), np.load(file), np.load(file)
            out.write(ids[piece].tobytes())
    with written_whole(folder / "vocab.json") as out:
        json.dump([vocab.words, vocab.counts.tolist()], out)
    for path in files:
        path.unlink()


def main(path, size, *targets):
    """A process that encodes some pieces, and says so after each."""
    gc.disable()  # it would look for garbage among millions of words, and find none
    for target in targets:
        try:
            _encode_piece(Path(path), Path(target), int(size))
        except OSError as error:
            os.write(1, f"{error}\n".encode())
            return
        os.write(1, b"done\n")  # at once: print would write the end of the line later, after a line of another process


if __name__ == "__main__":
    main(*sys.argv[1:])
