"""Where words come from: documentation on this disk, text8, planted topics, or a file of yours."""

import ast
import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import sysconfig
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from helpers.text.files import CONTROL, LETTERS, cache_folder, only_process, written_whole

PACKAGES = [
    "numpy", "scipy", "sklearn", "matplotlib", "pandas", "networkx", "tensorflow", "keras",
    "tensorboard", "horovod", "gensim", "hypothesis", "IPython", "ipyparallel", "jupyter_client",
    "jupyter_server", "traitlets", "tornado", "zmq", "joblib", "PIL", "absl", "prompt_toolkit",
    "_pytest", "setuptools",
]
DISTRIBUTIONS = {  # where the name of the package is another one
    "sklearn": "scikit-learn", "zmq": "pyzmq", "PIL": "pillow", "absl": "absl-py", "_pytest": "pytest",
}
SKIPPED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "_vendor"}
DOCTEST = re.compile(r"^[ \t]*(>>>|\.\.\.).*$", re.MULTILINE)
LAYOUT = 1  # of the cached file; a new number makes everybody rebuild
KEPT = 3  # builds of "docs"
PIECE = 1 << 20  # bytes read at a time
TEXT_WITHOUT = 0.01  # a text has control characters in less than this share of its first PIECE

WIKIPEDIA = (
    "text8: the first 100,000,000 characters of a cleaned English Wikipedia of 2006, by Matt Mahoney"
)
TEXT8_URL = "http://mattmahoney.net/dc/text8.zip"  # 31,344,016 bytes
TEXT8_SHA256 = "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232"
TEXT8_ELSEWHERE = (
    "give another address with load_corpus('text8', mirror=URL), or set the environment variable "
    "W2V_TEXT8 to the path of a text8 or text8.zip on this disk"
)

# of "planted"
TOPICS = 20
CONCEPTS = 15
FUNCTION_WORDS = 50
PASSAGE = 100  # words about one topic
SENTENCE = 10  # words about one concept and its companions
COMPANIONS = np.array([0, 1, 3, 7])  # a sentence about concept c uses c + 1, 3, 7, too, modulo 15


@dataclass(frozen=True)
class Corpus:
    """A text as words.

    Attributes
    ----------
    words : list of str
        One shared object for each distinct word.
    name : str
        What `load_corpus` was asked for.
    source : str
        Where the words come from, a sentence or a path.
    parts : tuple of (str, int)
        Label and number of words of each part, in order.
    """

    words: list = field(repr=False)
    name: str
    source: str
    parts: tuple


def load_corpus(name="docs", *, seed=0, n_words=200_000, mirror=None, cache_dir=None, progress=True):
    """Load a text; its words are lower-case runs of the letters a to z: "batch_size" is two words.

    Parameters
    ----------
    name : str or Path
        One of

        - "docs": the docstrings of the Python standard library and of installed packages, built
          once, then cached; another text for other versions of them;
        - "text8": the first 10**8 characters of a cleaned Wikipedia, downloaded once, or the text8
          or text8.zip on this disk that the environment variable W2V_TEXT8 names;
        - "planted": words with known topics and twins, drawn at random (these also have digits:
          "t03c07a");
        - the path of a .txt, .gz or .zip file.
    seed : int
        Of "planted".
    n_words : int
        Of "planted".
    mirror : str, optional
        Another address for text8.
    cache_dir : str or Path, optional
        In place of $W2V_CACHE or the user's cache directory.
    progress : bool
        Show a bar while it takes long.

    Returns
    -------
    Corpus

    Raises
    ------
    ValueError
        For an unknown name, n_words below 1 and a file that is damaged, no text or without words.
    FileNotFoundError
        For a missing file.
    ConnectionError
        When text8 cannot be downloaded.
    """
    cache = cache_folder(cache_dir)
    if name == "docs":
        return _docs(_installed(), cache, progress)
    if name == "text8":
        if named := os.environ.get("W2V_TEXT8"):
            return _from_file(Path(named), name, "the file that W2V_TEXT8 names")
        downloaded = _download_text8(cache, mirror or TEXT8_URL, progress)
        return _from_file(Path(downloaded), name, WIKIPEDIA)
    if name == "planted":
        return _planted(seed, n_words)
    path = Path(str(name))
    only_a_word = len(path.parts) == 1 and not path.suffix
    if only_a_word and not path.exists():
        known = "'docs', 'text8', 'planted' or the path of a file"
        raise ValueError(f"There is no corpus {name!r}: give {known}.")
    return _from_file(path, str(name), str(name))


# ---- Planted topics


def planted_twin(word):
    """Return the other word of the concept: "t03c07b" for "t03c07a".

    Raises
    ------
    ValueError
        For anything but a planted content word.
    """
    planted_topic(word)
    return word[:-1] + ("b" if word[-1] == "a" else "a")


def planted_topic(word):
    """Return the topic number of a planted content word: 3 for "t03c07a".

    Raises
    ------
    ValueError
        For anything else.
    """
    match = re.fullmatch(r"t(\d\d)c(\d\d)[ab]", word)
    if not match or int(match[1]) >= TOPICS or int(match[2]) >= CONCEPTS:
        last = f"t{TOPICS - 1}c{CONCEPTS - 1}b"
        raise ValueError(f"{word!r} is not one of the content words t00c00a to {last}.")
    return int(match[1])


def _planted(seed, n_words):
    """Passages on one topic, in sentences about one concept and its companions."""
    if n_words < 1:
        raise ValueError(f"A planted corpus needs n_words of at least 1, not {n_words}.")
    rng = np.random.default_rng(seed)
    passages = -(-n_words // PASSAGE)
    sentences = passages * PASSAGE // SENTENCE
    topic = np.repeat(rng.integers(TOPICS, size=passages), PASSAGE)
    theme = np.repeat(_zipf(rng, CONCEPTS, sentences), SENTENCE)
    companion = COMPANIONS[rng.choice(len(COMPANIONS), size=len(topic), p=[0.4, 0.2, 0.2, 0.2])]
    concept = topic * CONCEPTS + (theme + companion) % CONCEPTS
    content = 2 * concept + rng.integers(2, size=len(topic))
    function = 2 * TOPICS * CONCEPTS + _zipf(rng, FUNCTION_WORDS, len(topic))
    ids = np.where(rng.random(len(topic)) < 0.35, function, content)[:n_words]
    names = [f"t{t:02}c{c:02}{x}" for t in range(TOPICS) for c in range(CONCEPTS) for x in "ab"]
    names += [f"f{i:02}" for i in range(FUNCTION_WORDS)]
    kinds = f"{TOPICS} topics of {CONCEPTS} concepts, two words for each concept"
    source = f"generated from seed {seed}: {kinds}"
    return Corpus([names[i] for i in ids.tolist()], "planted", source, (("planted", n_words),))


def _zipf(rng, kinds, size):
    weights = 1 / np.arange(1, kinds + 1)
    return rng.choice(kinds, size=size, p=weights / weights.sum())


# ---- Files


def _read_words(file):
    """All words of an open binary file, read in pieces, one object for each distinct word."""
    words = []
    shared = {}
    rest = ""
    while piece := file.read(PIECE):
        text = rest + piece.translate(LETTERS).decode("ascii")
        cut = text.rfind(" ") + 1  # the last word may go on in the next piece
        rest = text[cut:]
        found = text[:cut].split()
        words.extend(map(shared.setdefault, found, found))
    words.extend(shared.setdefault(word, word) for word in rest.split())
    return words


def _open(path):
    """Open the text of a plain, .gz or .zip file for reading bytes."""
    kind = path.suffix.lower()
    if kind != ".zip":
        return gzip.open(path) if kind == ".gz" else open(path, "rb")
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise ValueError(f"{path} holds {len(members)} files; as a corpus it needs exactly 1, a text.")
        return archive.open(members[0])


def _from_file(path, name, source):
    if not path.is_file():
        builtin = "'docs', 'planted' and 'text8' (or the file that the variable W2V_TEXT8 names)"
        raise FileNotFoundError(f"There is no file {path}; the built-in corpora are {builtin}.")
    try:
        with _open(path) as file:
            begin = file.read(PIECE)
            file.seek(0)
            words = _read_words(file)
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} is damaged, or no {path.suffix} file: {reason}.") from error
    controls = len(begin) - len(begin.translate(None, CONTROL))
    if controls > TEXT_WITHOUT * len(begin):
        of_all = f"of its first {len(begin):,} bytes {controls:,} are control characters"
        raise ValueError(f"{path} is no text: {of_all}.")
    if not words:
        raise ValueError(f"{path} holds 0 words: a corpus needs text with the letters a to z.")
    return Corpus(words, name, source, ((name, len(words)),))


def _download_text8(cache, url, progress):
    """Return the path of text8.zip; one process of this host fetches it unless it is there, intact."""
    with warnings.catch_warnings():  # tqdm's, when pooch imports it in a kernel without ipywidgets
        warnings.simplefilter("ignore")
        import pooch

    def receive(url, file, _):
        look = {"unit": "B", "unit_scale": True, "file": sys.stdout, "leave": False}
        with tqdm(desc="text8.zip", total=1, disable=not progress, **look) as bar:
            pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16)(url, file, None)

    pooch.get_logger().setLevel("WARNING")  # its notes would be stderr in a notebook
    with only_process(cache / "text8.zip", "download text8.zip"):
        try:
            return pooch.retrieve(url, TEXT8_SHA256, "text8.zip", cache, downloader=receive)
        except (OSError, ValueError) as error:  # no answer, or another file than expected
            raise ConnectionError(f"{url} gives no text8 ({error}): {TEXT8_ELSEWHERE}.") from error


# ---- Documentation


def _installed():
    """List (label, version, folder) of the standard library and of each of PACKAGES that is there."""
    found = [("python", sys.version.split()[0], Path(sysconfig.get_path("stdlib")))]
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec and spec.submodule_search_locations:
            folder = Path(spec.submodule_search_locations[0])
            found.append((package, _version(package), folder))
    return found


def _version(package):
    for name in (DISTRIBUTIONS.get(package, package), f"{package}-cpu"):
        for known in importlib.metadata.distributions(name=name):
            return known.version
    return "unknown"


def _docs(installed, cache, progress):
    versions = json.dumps([LAYOUT, [row[:2] for row in installed]])
    path = cache / f"docs-{hashlib.sha256(versions.encode()).hexdigest()[:12]}.txt"
    if not path.exists():
        with only_process(cache / "docs", "build the docs corpus"):
            if not path.exists():
                _build_docs(installed, path, progress)
    with open(path, "rb") as file:
        parts = tuple(map(tuple, json.loads(file.readline())))
        words = _read_words(file)
    python = installed[0][1]
    source = f"docstrings of the Python {python} standard library and of {len(parts) - 1} packages"
    return Corpus(words, "docs", source, parts)


def _build_docs(installed, path, progress):
    """Write the parts as one line of JSON, then one line of words for each distinct docstring."""
    texts, parts = _harvest(installed, progress)
    with written_whole(path) as file:
        file.write("\n".join([json.dumps(parts), *texts]))
    by_age = sorted(path.parent.glob("docs-*.txt"), key=os.path.getmtime)
    for old in by_age[:-KEPT]:
        old.unlink()


def _harvest(installed, progress):
    """Collect the distinct texts in their order, and [(label, number of words)]."""
    files = [(label, file) for label, _, folder in installed for file in _python_files(folder)]
    texts = {}  # an ordered set
    counts = {label: 0 for label, _, _ in installed}
    bar = tqdm(files, "reading docstrings", file=sys.stdout, leave=False, disable=not progress)
    for label, file in bar:
        for doc in _docstrings(file):
            words = _letters(DOCTEST.sub("", doc)).split()
            text = " ".join(words)
            if text not in texts:
                texts[text] = None
                counts[label] += len(words)
    return texts, list(counts.items())


def _letters(text):
    return text.encode("utf-8", "replace").translate(LETTERS).decode("ascii")


def _python_files(folder):
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(directory, name) for name in sorted(names) if name.endswith(".py"))


def _docstrings(path):
    """Find the docstrings of a Python file and the texts of its add_newdoc calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(_texts(ast.parse(path.read_bytes())))
        except (SyntaxError, ValueError):  # a template, or code for another Python
            return []


def _texts(node):
    """Yield strings that are statements of their own, and texts given to functions like add_newdoc."""
    for child in ast.iter_child_nodes(node):
        documents = isinstance(child, ast.Call) and "add_newdoc" in ast.dump(child.func)
        if isinstance(child, ast.stmt | ast.excepthandler):
            yield from _texts(child)
        elif isinstance(node, ast.Expr) and (documents or isinstance(child, ast.Constant)):
            constants = [part.value for part in ast.walk(child) if isinstance(part, ast.Constant)]
            yield from (text for text in constants if isinstance(text, str) and " " in text)
