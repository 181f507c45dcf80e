"""text8, fetched once per host by pooch, which checks the hash and never shows a file half done."""

import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from requests.exceptions import ChunkedEncodingError, RequestException
from tqdm import tqdm

from helpers.text.files import only_process

TIMEOUT = 20.0  # seconds without a byte
TRIES = 4
HINT = ("give another address with load_corpus('text8', mirror=URL), or set the environment variable W2V_TEXT8 to the "
        "path of a text8 or text8.zip on this disk")


@dataclass(frozen=True)
class Download:
    """A file to fetch: its http(s) address, exact size in bytes, SHA-256 in hexadecimal."""

    url: str
    size: int
    sha256: str


TEXT8 = Download("http://mattmahoney.net/dc/text8.zip", 31_344_016,
                 "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232")


def text8(item, cache, progress=True):
    """The Path of text8: what the environment variable W2V_TEXT8 names, else `cache`/text8.zip, fetched if need be.

    Raises FileNotFoundError when W2V_TEXT8 names no file, and what `fetch` raises.
    """
    local = os.environ.get("W2V_TEXT8")
    if not local:
        return fetch(item, cache / "text8.zip", progress)
    if not Path(local).is_file():
        raise FileNotFoundError(f"The environment variable W2V_TEXT8 names {local}, but there is no such file.")
    return Path(local)


def fetch(item, target, progress=True):
    """The Path `target` of the file that `item` (a Download) describes, fetched unless it is there and intact.

    One process of this host downloads, the others wait. A download that is cut in the middle starts again, up to
    three times.

    Raises ValueError for an address that is not http(s) and for a file of another size or SHA-256, and
    ConnectionError when the server does not deliver. `target` then is as it was before.
    """
    if not item.url.startswith(("http://", "https://")):
        raise ValueError(f"A download needs an address with http:// or https://, not {item.url!r}.")
    with warnings.catch_warnings():  # in a kernel without ipywidgets tqdm warns when pooch imports it
        warnings.simplefilter("ignore")
        import pooch
    pooch.get_logger().setLevel("WARNING")  # its notes would be stderr in a notebook
    with only_process(target, f"download {target.name}"):
        for attempt in range(1, TRIES + 1):
            try:
                pooch.retrieve(item.url, item.sha256, target.name, target.parent,
                               downloader=lambda url, file, _: _receive(item, file, progress))
                return target
            except RequestException as error:
                if attempt == TRIES or not isinstance(error, ChunkedEncodingError):
                    problem = f"{_reason(error)}; attempt {attempt} of {TRIES}"
                    raise ConnectionError(f"{item.url} cannot be downloaded ({problem}): {HINT}.") from error
            except ValueError as error:
                problem = str(error).partition(" Deleted")[0]
                raise ValueError(f"{item.url} sends another file than expected: {problem}") from error
            time.sleep(0.5 * attempt)


def _receive(item, file, progress):
    """Download `item` to the path `file`; ValueError if it has another size."""
    from pooch import HTTPDownloader

    with tqdm(desc=item.url.rpartition("/")[2], total=item.size, unit="B", unit_scale=True, file=sys.stdout,
              leave=False, disable=not progress) as bar:
        HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=TIMEOUT)(item.url, file, None)
    if (size := os.path.getsize(file)) != item.size:
        raise ValueError(f"it has {size:,} bytes instead of {item.size:,}.")


def _reason(error):
    """What an exception of requests wraps, layer by layer, down to the system's own words."""
    inner = [error.__cause__, getattr(error, "reason", None), *reversed(error.args)]
    cause = next((part for part in inner if isinstance(part, Exception)), None)
    return str(error) if cause is None else _reason(cause)
