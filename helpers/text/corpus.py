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
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from helpers.text.files import CONTROL, LETTERS, cache_folder, only_process, written_whole
from helpers.text.text8 import TEXT8, fetch

PACKAGES = [
    "numpy", "scipy", "sklearn", "matplotlib", "pandas", "networkx", "tensorflow", "keras", "tensorboard",
    "horovod", "gensim", "hypothesis", "IPython", "ipyparallel", "jupyter_client", "jupyter_server",
    "traitlets", "tornado", "zmq", "joblib", "PIL", "absl", "prompt_toolkit", "_pytest", "setuptools",
]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "zmq": "pyzmq", "PIL": "pillow", "absl": "absl-py", "_pytest": "pytest"}
SKIPPED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "_vendor"}
DOCTEST = re.compile(r"^[ \t]*(>>>|\.\.\.).*$", re.MULTILINE)
LAYOUT = 1  # of the cached file; a new number makes everybody rebuild
WIKIPEDIA = "text8: the first 100,000,000 characters of a cleaned English Wikipedia of 2006, by Matt Mahoney"
PIECE = 1 << 20  # bytes read at a time
TOPICS, CONCEPTS, FUNCTION_WORDS = 20, 15, 50  # of "planted"
COMPANIONS = np.array([0, 1, 3, 7])  # a sentence about concept c also uses c + 1, c + 3 and c + 7, modulo 15


@dataclass(frozen=True)
class Corpus:
    """A text as words.

    words: list of str, one shared object for each distinct word. name: what load_corpus was asked for.
    source: where the words come from, a sentence or a path. parts: tuple of (label, number of words), in order.
    """

    words: list = field(repr=False)
    name: str
    source: str
    parts: tuple


def load_corpus(name="docs", *, seed=0, n_words=200_000, mirror=None, cache_dir=None, progress=True):
    """Load a Corpus. Its words are lower-case runs of the letters a to z: "batch_size" is two words.

    name is one of
    - "docs": the docstrings of the Python standard library and of installed packages, built once, then cached;
    - "text8": the first 10**8 characters of a cleaned Wikipedia, downloaded once (mirror: from another URL), or
      the text8 or text8.zip on this disk that the environment variable W2V_TEXT8 names;
    - "planted": n_words words with known topics and twins, drawn from seed (these also have digits: "t03c07a");
    - the path of a .txt, .gz or .zip file.
    cache_dir: in place of $W2V_CACHE or the user's cache directory. progress: show a bar while it takes long.

    Raises ValueError for an unknown name, n_words below 1 and a file that is damaged, no text or without words,
    FileNotFoundError for a missing file, ConnectionError when text8 cannot be downloaded.
    """
    cache = cache_folder(cache_dir)
    if name == "docs":
        return _docs(_installed(), cache, progress)
    if name == "text8":
        download = replace(TEXT8, url=mirror or TEXT8.url), cache / "text8.zip", progress
        return _from_file(Path(os.environ.get("W2V_TEXT8") or fetch(*download)), name, WIKIPEDIA)
    if name == "planted":
        return _planted(seed, n_words)
    if len((path := Path(str(name))).parts) == 1 and not path.suffix and not path.exists():
        raise ValueError(f"There is no corpus {name!r}: give 'docs', 'text8', 'planted' or the path of a file.")
    return _from_file(path, str(name), str(name))


def planted_twin(word):
    """The other word of the concept: "t03c07b" for "t03c07a". ValueError for any other kind of word."""
    planted_topic(word)
    return word[:-1] + ("b" if word[-1] == "a" else "a")


def planted_topic(word):
    """The topic number of a planted content word: 3 for "t03c07a". ValueError for any other kind of word."""
    match = re.fullmatch(r"t(\d\d)c(\d\d)[ab]", word)
    if not match or int(match[1]) >= TOPICS or int(match[2]) >= CONCEPTS:
        raise ValueError(f"{word!r} is not one of the content words t00c00a to t{TOPICS - 1}c{CONCEPTS - 1}b.")
    return int(match[1])


def _planted(seed, n_words):
    """Passages of 100 words on one topic, in sentences of 10 words about one concept and its companions."""
    if n_words < 1:
        raise ValueError(f"A planted corpus needs n_words of at least 1, not {n_words}.")
    rng = np.random.default_rng(seed)
    passages = -(-n_words // 100)
    topic = np.repeat(rng.integers(TOPICS, size=passages), 100)
    theme = np.repeat(_zipf(rng, CONCEPTS, 10 * passages), 10)
    companion = COMPANIONS[rng.choice(len(COMPANIONS), size=len(topic), p=[0.4, 0.2, 0.2, 0.2])]
    content = 2 * (topic * CONCEPTS + (theme + companion) % CONCEPTS) + rng.integers(2, size=len(topic))
    function = 2 * TOPICS * CONCEPTS + _zipf(rng, FUNCTION_WORDS, len(topic))
    ids = np.where(rng.random(len(topic)) < 0.35, function, content)[:n_words]
    names = [f"t{t:02}c{c:02}{x}" for t in range(TOPICS) for c in range(CONCEPTS) for x in "ab"]
    names += [f"f{i:02}" for i in range(FUNCTION_WORDS)]
    source = f"generated from seed {seed}: {TOPICS} topics of {CONCEPTS} concepts, two words for each concept"
    return Corpus([names[i] for i in ids.tolist()], "planted", source, (("planted", n_words),))


def _zipf(rng, kinds, size):
    weights = 1 / np.arange(1, kinds + 1)
    return rng.choice(kinds, size=size, p=weights / weights.sum())


def _read_words(file):
    """All words of an open binary file, read in pieces, one object for each distinct word."""
    words, shared, rest = [], {}, ""
    while piece := file.read(PIECE):
        text = rest + piece.translate(LETTERS).decode("ascii")
        cut = text.rfind(" ") + 1  # the last word may go on in the next piece
        rest, found = text[cut:], text[:cut].split()
        words.extend(map(shared.setdefault, found, found))
    words.extend(shared.setdefault(word, word) for word in rest.split())
    return words


def _open(path):
    """The text of a plain, .gz or .zip file, open for reading bytes."""
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
        builtin = "'docs', 'planted' and 'text8' (or the file that the environment variable W2V_TEXT8 names)"
        raise FileNotFoundError(f"There is no file {path}; the built-in corpora are {builtin}.")
    try:
        with _open(path) as file:
            begin = file.read(PIECE)
            file.seek(0)
            words = _read_words(file)
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is damaged, or no {path.suffix} file: {str(error).rstrip('.')}.") from error
    if (controls := len(begin) - len(begin.translate(None, CONTROL))) > len(begin) / 100:
        raise ValueError(f"{path} is no text: of its first {len(begin):,} bytes {controls:,} are control characters.")
    if not words:
        raise ValueError(f"{path} holds 0 words: a corpus needs text with the letters a to z.")
    return Corpus(words, name, source, ((name, len(words)),))


def _installed():
    """[(label, version, folder)] of the standard library and of the packages of PACKAGES that are installed."""
    found = [("python", sys.version.split()[0], Path(sysconfig.get_path("stdlib")))]
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec and spec.submodule_search_locations:
            names = DISTRIBUTIONS.get(package, package), f"{package}-cpu"
            versions = [known.version for name in names for known in importlib.metadata.distributions(name=name)]
            found.append((package, [*versions, "unknown"][0], Path(spec.submodule_search_locations[0])))
    return found


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
    if len(words) != (expected := sum(count for _, count in parts)):
        raise ValueError(f"{path} holds {len(words):,} words instead of {expected:,}: delete it to have it rebuilt.")
    source = f"docstrings of the Python {installed[0][1]} standard library and of {len(parts) - 1} packages"
    return Corpus(words, "docs", source, parts)


def _build_docs(installed, path, progress):
    """Write the parts as one line of JSON, then one line of words for each distinct docstring."""
    texts, parts = _harvest(installed, progress)
    with written_whole(path) as file:
        file.write("\n".join([json.dumps(parts), *texts]))
    for old in sorted(path.parent.glob("docs-*.txt"), key=os.path.getmtime)[:-3]:
        old.unlink()


def _harvest(installed, progress):
    files = [(label, file) for label, _, folder in installed for file in _python_files(folder)]
    texts, counts = {}, {label: 0 for label, _, _ in installed}
    for label, file in tqdm(files, "reading docstrings", file=sys.stdout, leave=False, disable=not progress):
        for doc in _docstrings(file):
            words = DOCTEST.sub("", doc).encode("utf-8", "replace").translate(LETTERS).decode("ascii").split()
            text = " ".join(words)
            if text not in texts:
                texts[text] = None
                counts[label] += len(words)
    return texts, list(counts.items())


def _python_files(folder):
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(directory, name) for name in sorted(names) if name.endswith(".py"))


def _docstrings(path):
    """The docstrings of a Python file and the texts of its add_newdoc calls, from its syntax tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(_texts(ast.parse(path.read_bytes())))
        except (SyntaxError, ValueError):  # a template, or code for another Python
            return []


def _texts(node):
    """Strings that are statements of their own below `node`, and texts given to functions like add_newdoc."""
    for child in ast.iter_child_nodes(node):
        documents = isinstance(child, ast.Call) and "add_newdoc" in ast.dump(child.func)
        if isinstance(child, ast.stmt | ast.excepthandler):
            yield from _texts(child)
        elif isinstance(node, ast.Expr) and (documents or isinstance(child, ast.Constant)):
            constants = [part.value for part in ast.walk(child) if isinstance(part, ast.Constant)]
            yield from (text for text in constants if isinstance(text, str) and " " in text)
