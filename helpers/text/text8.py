"""text8, or any large file, fetched once per host: resumed when the line is cut, checked, and never seen half done."""

import hashlib
import http.client
import os
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from tqdm import tqdm

TIMEOUT = 20.0  # seconds without a byte
TRIES = 4


@dataclass(frozen=True)
class Download:
    """A file to fetch: its http(s) address, exact size in bytes, SHA-256 in hexadecimal.

    hint: what a reader can do when the server fails; it ends the message of the ConnectionError.
    """

    url: str
    size: int
    sha256: str
    hint: str = "try again later"


TEXT8 = Download(
    "http://mattmahoney.net/dc/text8.zip", 31_344_016,
    "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    "give another address with load_corpus('text8', mirror=URL), or set the environment variable W2V_TEXT8 to the "
    "path of a text8 or text8.zip on this disk")


def text8(item, cache, progress=True):
    """The Path of text8: what the environment variable W2V_TEXT8 names, else `cache`/text8.zip, fetched if need be.

    Raises FileNotFoundError when W2V_TEXT8 names no file, and what `fetch` raises.
    """
    if local := os.environ.get("W2V_TEXT8"):
        if not Path(local).is_file():
            raise FileNotFoundError(f"The environment variable W2V_TEXT8 names {local}, but there is no such file.")
        return Path(local)
    fetch(item, cache / "text8.zip", progress=progress)
    return cache / "text8.zip"


def fetch(item, target, *, progress=True):
    """Put the file that `item` (a Download) describes at the path `target`, unless it is there and intact.

    The bytes go to `<target>.part`, are checked, and only then moved into place. A file lock makes the other
    processes of this host wait for the one that downloads. A connection cut in the middle is resumed (or, if the
    server knows no ranges, restarted) up to three times.

    Raises ValueError for an address that is not http(s) and for a file of another size or SHA-256, and
    ConnectionError when the server does not deliver. `target` then is as it was before.
    """
    target = Path(target)
    if not item.url.startswith(("http://", "https://")):
        raise ValueError(f"A download needs an address with http:// or https://, not {item.url!r}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.exists() and _fault(item, target) is None:
            return
        part = target.with_name(target.name + ".part")
        try:
            with open(part, "wb") as file:
                _receive(item, file, progress)
            if fault := _fault(item, part):
                raise ValueError(f"{item.url} sends another file than expected: it has {fault}.")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)


def _fault(item, path):
    """What is wrong with the file at `path`, in words, or None."""
    size = path.stat().st_size
    if size != item.size:
        return f"{size:,} bytes instead of {item.size:,}"
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != item.sha256:
        return f"SHA-256 {digest.hexdigest()} instead of {item.sha256}"
    return None


def _receive(item, file, progress):
    """Read `item` into the open `file`. A server that never sent a byte is not asked again."""
    bar = tqdm(desc=item.url.rpartition("/")[2], total=item.size, unit="B", unit_scale=True, file=sys.stdout,
               leave=False, disable=not progress)
    with bar:
        for attempt in range(1, TRIES + 1):
            try:
                return _request(item, file, bar)
            except (OSError, http.client.HTTPException) as error:
                if attempt == TRIES or file.tell() == 0:
                    reason = str(error).removeprefix("<urlopen error ").removesuffix(">")
                    raise ConnectionError(f"{item.url} cannot be downloaded ({reason}; attempt {attempt} of "
                                          f"{TRIES}): {item.hint}.") from error
            time.sleep(0.5 * attempt)


def _request(item, file, bar):
    """One request for what is still missing. Raises ConnectionError when the line is cut before the end."""
    headers = {"Range": f"bytes={file.tell()}-"} if file.tell() else {}
    with urllib.request.urlopen(urllib.request.Request(item.url, headers=headers), timeout=TIMEOUT) as reply:
        if not reply.headers.get("Content-Range", "").startswith(f"bytes {file.tell()}-"):
            file.seek(0)
            file.truncate()
        bar.reset()
        bar.update(file.tell())
        announced = file.tell() + int(reply.headers.get("Content-Length", item.size - file.tell()))
        if announced != item.size:
            raise ValueError(f"{item.url} sends another file than expected: it has {announced:,} bytes instead of "
                             f"{item.size:,}.")
        while file.tell() <= item.size and (piece := reply.read(1 << 16)):
            file.write(piece)
            bar.update(len(piece))
    if file.tell() < item.size:
        raise ConnectionError(f"the connection was cut after {file.tell():,} of {item.size:,} bytes")
