"""text8, fetched once per host by pooch, which checks the hash and never shows a file half done."""

import sys
import warnings
from dataclasses import dataclass

from requests.exceptions import RequestException
from tqdm import tqdm

from helpers.text.files import only_process

HINT = ("give another address with load_corpus('text8', mirror=URL), or set the environment variable W2V_TEXT8 to the "
        "path of a text8 or text8.zip on this disk")


@dataclass(frozen=True)
class Download:
    """A file to fetch: its http(s) address, its SHA-256 in hexadecimal, and when to give it up."""

    url: str
    sha256: str
    timeout: float = 20.0  # seconds without a byte
    tries: int = 3


TEXT8 = Download("http://mattmahoney.net/dc/text8.zip",  # 31,344,016 bytes
                 "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232")


def fetch(item, target, progress=True):
    """The Path `target` of the file that `item` (a Download) describes, fetched unless it is there and intact.

    One process of this host downloads, the others wait.
    Raises ValueError for a file with another SHA-256, and ConnectionError when the server does not deliver. `target`
    then is as it was before.
    """
    with warnings.catch_warnings():  # in a kernel without ipywidgets tqdm warns when pooch imports it
        warnings.simplefilter("ignore")
        import pooch

    def receive(url, file, _):
        look = {"unit": "B", "unit_scale": True, "file": sys.stdout, "leave": False, "disable": not progress}
        with tqdm(desc=target.name, total=1, **look) as bar:  # pooch asks the server for the total
            pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=item.timeout)(url, file, None)

    files = {"registry": {target.name: item.sha256}, "urls": {target.name: item.url}}
    store = pooch.create(target.parent, "", retry_if_failed=item.tries - 1, **files)
    pooch.get_logger().setLevel("WARNING")  # its notes would be stderr in a notebook
    with only_process(target, f"download {target.name}"):
        try:
            store.fetch(target.name, downloader=receive)
        except RequestException as error:
            raise ConnectionError(f"{item.url} cannot be downloaded ({_reason(error)}): {HINT}.") from error
        except ValueError as error:
            problem = str(error).partition(" Deleted")[0]
            raise ValueError(f"{item.url} sends another file than expected: {problem}") from error
    return target


def _reason(error):
    """What an exception of requests wraps, layer by layer, down to the system's own words."""
    inner = [error.__cause__, getattr(error, "reason", None), *reversed(error.args)]
    cause = next((part for part in inner if isinstance(part, Exception)), None)
    return str(error) if cause is None else _reason(cause)
