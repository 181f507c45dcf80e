"""Corpora: documentation, text8 from a real local server, planted topics, files."""

import gzip
import hashlib
import importlib.metadata
import re
import socket
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from helpers.text import corpus
from helpers.text.corpus import load_corpus, planted_topic, planted_twin
from helpers.text.files import cache_folder


def write(path, *texts):
    """A file with this content, packed as its name says; a .zip may have several."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, text in enumerate(texts):
                archive.writestr(f"folder/{number}.txt", text)
    else:
        path.write_bytes(gzip.compress(texts[0]) if path.suffix == ".gz" else texts[0])
    return path


# ---- The cache


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_the_cache_is_where_it_always_was(monkeypatch, tmp_path):
    monkeypatch.delenv("W2V_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "distributed-word2vec"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "distributed-word2vec"
    monkeypatch.setenv("W2V_CACHE", str(tmp_path / "w2v"))
    assert cache_folder() == tmp_path / "w2v" and cache_folder(tmp_path) == tmp_path


# ---- Documentation


def test_docs_are_many_clean_words_in_parts_in_order_one_object_for_each_distinct_word():
    docs = load_corpus("docs", progress=False)
    distinct = set(docs.words)
    assert len(docs.words) >= 1_000_000 and len(set(map(id, docs.words))) == len(distinct)
    assert all(re.fullmatch("[a-z]+", word) for word in distinct)
    labels = [label for label, _ in docs.parts]
    assert labels[0] == "python" and {"numpy", "tensorflow"} <= set(labels)
    assert sum(count for _, count in docs.parts) == len(docs.words)
    start = sum(count for _, count in docs.parts[:labels.index("numpy")])
    numpy_part = Counter(docs.words[start:start + dict(docs.parts)["numpy"]])
    assert numpy_part["ndarray"] > 500 > numpy_part["tensorflow"]


def test_installed_packages_have_real_versions():
    installed = {label: version for label, version, _ in corpus._installed()}
    assert installed["python"] == ".".join(map(str, sys.version_info[:3]))
    assert installed["sklearn"] == importlib.metadata.version("scikit-learn")
    assert "unknown" not in installed.values()


MODULE = '''"""The first text, of module_one."""
add_newdoc("toy.core", "array", ("sort", """Sorts in place."""))
X = "an ordinary string is no documentation"
if X:
    class Table:
        """A table.

            >>> table = hidden()
            ... hidden()
        Shown again.
        """
        def rows(self):
            "All ROWS, caf\\u00e9."
        async def columns(self):
            """A table. Shown again!"""
'''
TOY_WORDS = ["the", "first", "text", "of", "module", "one", "sorts", "in", "place", "a", "table", "shown", "again",
             "all", "rows", "caf"]


@pytest.fixture
def toy(tmp_path):
    """A package: its folder."""
    package = tmp_path / "toy"
    (package / "tests").mkdir(parents=True)
    (package / "a.py").write_text(MODULE, encoding="utf-8")
    (package / "b.py").write_text("{{ template }}")
    (package / "c.py").write_bytes(b'"""null \0 byte"""')
    (package / "d.py").write_text('"""Last words."""')
    (package / "tests" / "test_a.py").write_text('"""A test is not read."""')
    return package


@pytest.fixture
def build(toy, tmp_path):
    """A function: the corpus of that package alone, in a cache of this test."""
    return lambda version="1.0": corpus._docs([("toy", version, toy)], tmp_path / "cache", False)


def test_docstrings_are_harvested_without_doctests_and_duplicates_and_without_a_word(build, capsys):
    built = build()
    assert built.words == [*TOY_WORDS, "last", "words"]
    assert built.parts == (("toy", len(TOY_WORDS) + 2),)
    assert capsys.readouterr().out == ""  # a short wait for the lock is not worth a line


def test_cache_is_used_until_a_version_changes_and_only_a_few_old_builds_are_kept(build, toy, tmp_path):
    first = build()
    (toy / "d.py").write_text('"""Newer words."""')
    assert build() == first
    assert build("1.1").words == [*TOY_WORDS, "newer", "words"]
    for number in range(6):
        build(f"2.{number}")
    assert len(list((tmp_path / "cache").glob("docs-*.txt"))) == 3


def python(code, *args):
    command = [sys.executable, "-c", "import sys; from pathlib import Path\n" + code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def two_that_wait(lock, task, code, *args):
    """What two processes print that run this code while somebody holds the lock, until it is given up."""
    with FileLock(lock):
        both = [python(code, *args) for _ in range(2)]
        assert all(one.stdout.readline() == f"Waiting for another process to {task}; it holds {lock}\n" for one in both)
    answers = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], answers
    return [out for out, _ in answers]


BUILD = """from helpers.text import corpus
built = corpus._docs([("toy", "1.0", Path(sys.argv[2]))], Path(sys.argv[1]), True)
print(len(built.words))"""


def test_exactly_one_of_several_processes_builds_and_the_others_say_that_they_wait(toy, tmp_path):
    said = two_that_wait(tmp_path / "docs.lock", "build the docs corpus", BUILD, tmp_path, toy)
    assert all(out.split()[-1] == str(len(TOY_WORDS) + 2) for out in said)
    assert sum("reading docstrings" in out for out in said) == 1


# ---- Text8


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.length))
        self.end_headers()
        self.wfile.write(self.server.payload)

    def log_message(self, *args):
        pass


@contextmanager
def serving(payload, status=200, length=None):
    """A server on 127.0.0.1 that may announce more than it sends; .requests counts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.payload, server.status, server.length, server.requests = payload, status, length or len(payload), 0
    server.url = f"http://127.0.0.1:{server.server_port}/text8.zip"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy between the tests and their own server, and no text8 of the user's."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("W2V_TEXT8", raising=False)


LETTERS = np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz     "), size=400_000)
TEXT = " anarchism originated as a term " + "".join(LETTERS)


@pytest.fixture(scope="module")
def payload(tmp_path_factory):
    return write(tmp_path_factory.mktemp("payload") / "text8.zip", TEXT.encode()).read_bytes()


@pytest.fixture
def download(payload, tmp_path, monkeypatch):
    """A function: load_corpus("text8") from an address, where our payload is what is expected."""
    monkeypatch.setattr(corpus, "TEXT8_SHA256", hashlib.sha256(payload).hexdigest())
    return lambda url, progress=False: load_corpus("text8", mirror=url, cache_dir=tmp_path, progress=progress)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def test_text8_is_downloaded_once_with_a_bar_on_stdout_and_read(download, tmp_path, payload, capfd):
    with serving(payload) as server:
        for _ in range(2):
            loaded = download(server.url, progress=True)
            assert loaded.words == TEXT.split() and loaded.name == "text8"
            assert loaded.parts == (("text8", len(TEXT.split())),) and str(tmp_path) not in loaded.source
        assert server.requests == 1
    assert leftovers(tmp_path) == ["text8.zip"] and (tmp_path / "text8.zip").read_bytes() == payload
    out, errors = capfd.readouterr()
    assert "text8.zip: " in out and "B/s" in out and errors == ""


def check_advice(message, url):
    assert url in message and "mirror=" in message and "W2V_TEXT8" in message and "\n" not in message


@pytest.mark.parametrize("longer", [b"", b"more"])
def test_another_file_is_refused(download, tmp_path, payload, longer):
    sent = payload[:-1] + bytes([payload[-1] ^ 1]) + longer
    with serving(sent) as server, pytest.raises(ConnectionError, match="gives no text8 ") as caught:
        download(server.url)
    check_advice(str(caught.value), server.url)
    assert all(hashlib.sha256(file).hexdigest() in str(caught.value) for file in (sent, payload))
    assert leftovers(tmp_path) == []


def test_a_download_that_fails_is_one_sentence(download, tmp_path, payload, monkeypatch):
    def fails(url, reason):
        with pytest.raises(ConnectionError, match=reason) as caught:
            download(url)
        check_advice(str(caught.value), url)
        assert leftovers(tmp_path) == []

    with serving(payload[:1000], length=len(payload)) as server:
        fails(server.url, "IncompleteRead")
    with serving(b"", status=404) as server:
        fails(server.url, "404")
    fails(server.url, "refused")  # it has ended
    fails("mirror/text8.zip", "No scheme supplied")
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fails(f"http://127.0.0.1:{silent.getsockname()[1]}/text8.zip", "timed out")


FETCH = """from helpers.text import corpus
corpus.TEXT8_SHA256 = sys.argv[1]
corpus.load_corpus("text8", mirror=sys.argv[2], cache_dir=sys.argv[3])"""


def test_two_processes_download_once_and_say_that_they_wait(tmp_path, payload):
    with serving(payload) as server:
        arguments = hashlib.sha256(payload).hexdigest(), server.url, tmp_path
        two_that_wait(tmp_path / "text8.zip.lock", "download text8.zip", FETCH, *arguments)
        assert server.requests == 1
    assert leftovers(tmp_path) == ["text8.zip"] and (tmp_path / "text8.zip").read_bytes() == payload


def test_w2v_text8_names_a_local_file(tmp_path, monkeypatch):
    (tmp_path / "text8").write_text("anarchism originated as a term")
    monkeypatch.setenv("W2V_TEXT8", str(tmp_path / "text8"))
    found = load_corpus("text8", cache_dir=tmp_path)
    assert found.words == ["anarchism", "originated", "as", "a", "term"]
    assert found.source == "the file that W2V_TEXT8 names"
    monkeypatch.setenv("W2V_TEXT8", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError, match="no file .*missing; .* W2V_TEXT8 names"):
        load_corpus("text8", cache_dir=tmp_path)


# ---- Planted


def test_planted_is_exact_and_reproducible():
    first, again, other = (load_corpus("planted", seed=seed, n_words=12_345) for seed in (1, 1, 2))
    assert len(first.words) == 12_345 and first == again and first.words != other.words
    assert first.parts == (("planted", 12_345),)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        load_corpus("planted", n_words=0)


def test_planted_truth():
    assert planted_twin("t03c07a") == "t03c07b" and planted_twin("t03c07b") == "t03c07a"
    assert planted_topic("t03c07a") == 3
    for word in ("f00", "t20c00a", "t03c15b", "t03c07c", "UNK"):
        for question in (planted_topic, planted_twin):
            with pytest.raises(ValueError, match=word):
                question(word)


def test_planted_frequencies():
    counts = Counter(load_corpus("planted").words)
    function = [counts.pop(f"f{i:02}") for i in range(50)]
    assert function[0] / function[9] == pytest.approx(10, rel=0.15)
    assert max(counts.values()) > 4 * min(counts.values()) >= 4 * 30


# ---- Files


SENTENCE = "The Batch_size is 128; l'été: DON'T stop.\n"
SENTENCE_WORDS = ["the", "batch", "size", "is", "l", "t", "don", "t", "stop"]


@pytest.mark.parametrize("name", ["text.txt", "text.gz", "text.zip", "TEXT.ZIP", "text"])
def test_files(tmp_path, name):
    path = write(tmp_path / name, SENTENCE.encode())
    loaded = load_corpus(str(path))
    assert loaded.words == SENTENCE_WORDS == load_corpus(path).words
    assert (loaded.name, loaded.source, loaded.parts) == (str(path), str(path), ((str(path), 9),))


def test_words_across_pieces(tmp_path, monkeypatch):
    text = "a bb ccc dddd  eeeee "
    (tmp_path / "text.txt").write_text(text + text + "end")
    for piece in range(1, 12):
        monkeypatch.setattr(corpus, "PIECE", piece)
        words = load_corpus(tmp_path / "text.txt").words
        assert words == [*text.split(), *text.split(), "end"]
        assert len(set(map(id, words))) == 6


def test_text_with_few_letters_is_a_text(tmp_path):
    (tmp_path / "text.txt").write_text("1\t2\x0c\r\n" * 1_000 + "one 한국어 " * 3, encoding="utf-8")
    assert load_corpus(tmp_path / "text.txt").words == ["one"] * 3


def test_what_is_no_corpus():
    with pytest.raises(FileNotFoundError, match="'docs', 'planted' and 'text8'"):
        load_corpus("nowhere/my.txt")
    for name in ("text9", None, 8):
        with pytest.raises(ValueError, match=f"no corpus {name!r}: give 'docs', 'text8', 'planted' or the path"):
            load_corpus(name)


NOISE = np.random.default_rng(0).bytes(1_000_000)
NO_TEXT = "is no text: of its first [0-9,]+ bytes [0-9,]+ are control"


@pytest.mark.parametrize(
    ("name", "texts", "cut", "sentence"),
    [
        *[(f"noise.{kind}", [NOISE], None, NO_TEXT) for kind in ("txt", "gz", "zip")],
        ("numbers.txt", [b"1 2 3"], None, "holds 0 words"),
        *[(name, [TEXT.encode()], cut, "is damaged") for name in ("a.gz", "a.zip") for cut in (30, 10_000)],
        ("two.zip", [b"a", b"b"], None, "holds 2 files"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, name, texts, cut, sentence):
    path = write(tmp_path / name, *texts)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=f"{name} {sentence}"):
        load_corpus(path)
