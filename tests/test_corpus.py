"""Corpora: documentation, text8 from a real local server, planted topics, files."""

import gzip
import hashlib
import importlib.metadata
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from scipy.sparse.linalg import svds

from helpers.text import corpus
from helpers.text.corpus import load_corpus, planted_topic, planted_twin

WORDS = re.compile("[a-z]+")


def write(path, data):
    """A file with this content, packed as its name says."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/text.txt", data)
    else:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# ---- The cache


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_the_cache_is_where_it_always_was(monkeypatch, tmp_path):
    used = []
    monkeypatch.setattr(corpus, "_docs", lambda installed, cache, progress: used.append(cache))
    monkeypatch.delenv("W2V_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    load_corpus()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    load_corpus()
    monkeypatch.setenv("W2V_CACHE", str(tmp_path / "w2v"))
    load_corpus()
    load_corpus(cache_dir=tmp_path)
    assert used == [Path.home() / ".cache" / "distributed-word2vec", tmp_path / "xdg" / "distributed-word2vec",
                    tmp_path / "w2v", tmp_path]


# ---- Documentation


@pytest.fixture(scope="module")
def docs():
    return load_corpus("docs", progress=False)


def test_docs_are_large_and_clean(docs):
    assert len(docs.words) >= 1_000_000
    distinct = set(docs.words)
    assert all(WORDS.fullmatch(word) for word in distinct)
    assert {"rows", "columns", "array", "minimum", "maximum"} <= distinct


def test_docs_parts_cover_the_corpus_in_order(docs):
    labels = [label for label, _ in docs.parts]
    assert labels[0] == "python" and {"numpy", "tensorflow"} <= set(labels)
    assert sum(count for _, count in docs.parts) == len(docs.words)
    start = sum(count for _, count in docs.parts[:labels.index("numpy")])
    numpy_part = Counter(docs.words[start:start + dict(docs.parts)["numpy"]])
    assert numpy_part["ndarray"] > 500 > numpy_part["tensorflow"]


def test_docs_share_one_object_for_each_distinct_word(docs):
    assert len(set(map(id, docs.words))) == len(set(docs.words))


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
    """A package as the builder sees it: [(label, version, folder)]."""
    package = tmp_path / "toy"
    (package / "tests").mkdir(parents=True)
    (package / "a.py").write_text(MODULE, encoding="utf-8")
    (package / "b.py").write_text("{{ template }}")
    (package / "c.py").write_bytes(b'"""null \0 byte"""')
    (package / "d.py").write_text('"""Last words."""')
    (package / "tests" / "test_a.py").write_text('"""A test is not read."""')
    return [("toy", "1.0", package)]


def test_docstrings_are_harvested_without_doctests_and_duplicates(toy, tmp_path):
    built = corpus._docs(toy, tmp_path / "cache", False)
    assert built.words == [*TOY_WORDS, "last", "words"]
    assert built.parts == (("toy", len(TOY_WORDS) + 2),)


def test_cache_is_used_until_a_version_changes(toy, tmp_path):
    cache = tmp_path / "cache"
    first = corpus._docs(toy, cache, False)
    (toy[0][2] / "d.py").write_text('"""Newer words."""')
    assert corpus._docs(toy, cache, False) == first
    newer = corpus._docs([("toy", "1.1", toy[0][2])], cache, False)
    assert newer.words == [*TOY_WORDS, "newer", "words"]


def test_only_a_few_old_builds_are_kept(toy, tmp_path):
    for version in range(6):
        corpus._docs([("toy", str(version), toy[0][2])], tmp_path / "cache", False)
    assert len(list((tmp_path / "cache").glob("docs-*.txt"))) == 3


def test_damaged_cache_is_refused(toy, tmp_path):
    corpus._docs(toy, tmp_path / "cache", False)
    (path,) = (tmp_path / "cache").glob("docs-*.txt")
    path.write_text(path.read_text().removesuffix("words"))
    with pytest.raises(ValueError, match=f"holds {len(TOY_WORDS) + 1} words instead of {len(TOY_WORDS) + 2}"):
        corpus._docs(toy, tmp_path / "cache", False)


def python(code, *args):
    command = [sys.executable, "-c", "import sys; from pathlib import Path\n" + code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


BUILD = """from helpers.text import corpus
built = corpus._docs([("toy", "1.0", Path(sys.argv[2]))], Path(sys.argv[1]), True)
print(len(built.words))"""


def test_exactly_one_of_several_processes_builds_and_the_others_say_that_they_wait(toy, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    with FileLock(cache / "docs.lock"):
        builders = [python(BUILD, cache, toy[0][2]) for _ in range(2)]
        waiting = "Waiting for another process to build the docs corpus; it holds "
        assert all(builder.stdout.readline().startswith(waiting) for builder in builders)
    answers = [builder.communicate(timeout=60) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0], answers
    assert all(out.split()[-1] == str(len(TOY_WORDS) + 2) for out, _ in answers)
    assert sum("reading docstrings" in out for out, _ in answers) == 1


def test_a_short_wait_is_not_worth_a_line(toy, tmp_path, capsys):
    corpus._docs(toy, tmp_path / "cache", False)
    assert capsys.readouterr().out == ""


def test_ctrl_c_stops_the_build_and_leaves_nothing(tmp_path):
    builder = python(BUILD, tmp_path, sysconfig.get_path("stdlib"))
    assert builder.stdout.read(10)  # the progress bar has begun
    builder.send_signal(signal.SIGINT)
    _, errors = builder.communicate(timeout=30)
    assert builder.returncode != 0 and "KeyboardInterrupt" in errors
    assert [path.name for path in tmp_path.iterdir() if path.name != "docs.lock"] == []
    with FileLock(tmp_path / "docs.lock", timeout=0):
        pass


# ---- Text8


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests += 1
        if server.status != 200:
            return self.send_error(server.status)
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.payload)))
        self.end_headers()
        if server.stalls:
            server.released.wait(10)
        self.wfile.write(server.payload[: len(server.payload) // 2] if server.cut else server.payload)

    def log_message(self, *args):
        pass


@contextmanager
def serving(payload, *, status=200, cut=False, stalls=False):
    """A server on 127.0.0.1, which may cut its answers in the middle or send nothing; .requests counts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.payload, server.status, server.cut, server.stalls, server.requests = payload, status, cut, stalls, 0
    server.released = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/text8.zip"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
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


def test_text8_is_downloaded_once_and_read(download, tmp_path, payload):
    with serving(payload) as server:
        for _ in range(2):
            loaded = download(server.url)
            assert loaded.words == TEXT.split() and loaded.name == "text8"
            assert loaded.parts == (("text8", len(TEXT.split())),) and str(tmp_path) not in loaded.source
        assert server.requests == 1
    assert leftovers(tmp_path) == ["text8.zip"] and (tmp_path / "text8.zip").read_bytes() == payload


def test_a_damaged_copy_is_replaced(download, tmp_path, payload):
    (tmp_path / "text8.zip").write_bytes(payload[:-1] + b"x")
    with serving(payload) as server:
        download(server.url)
    assert (tmp_path / "text8.zip").read_bytes() == payload


def test_the_bar_is_on_stdout_and_nothing_on_stderr(download, payload, capfd):
    with serving(payload) as server:
        download(server.url, progress=True)
    out, errors = capfd.readouterr()
    assert "text8.zip: " in out and "B/s" in out and errors == ""


def check_advice(message, url):
    assert url in message and "mirror=" in message and "W2V_TEXT8" in message and "\n" not in message


@pytest.mark.parametrize("longer", [b"", b"more"])
def test_another_file_is_refused(download, tmp_path, payload, longer):
    sent = payload[:-1] + bytes([payload[-1] ^ 1]) + longer
    with serving(sent) as server, pytest.raises(ValueError, match="sends another file than expected ") as caught:
        download(server.url)
    check_advice(str(caught.value), server.url)
    assert all(hashlib.sha256(file).hexdigest() in str(caught.value) for file in (sent, payload))
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"cut": True}, "IncompleteRead"), ({"stalls": True}, "timed out"), ({"status": 404}, "404")],
    ids=["cut", "sends nothing", "no such file"],
)
def test_a_download_that_fails_is_one_sentence(options, reason, download, tmp_path, payload, monkeypatch):
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 0.3 if "stalls" in options else 60)
    with serving(payload, **options) as server, pytest.raises(ConnectionError, match=reason) as caught:
        download(server.url)
    check_advice(str(caught.value), server.url)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "reason"), [("http://127.0.0.1:9/text8.zip", "refused"), ("mirror/text8.zip", "No scheme supplied")]
)
def test_an_address_where_nobody_answers_is_one_sentence(url, reason, download, tmp_path):
    with pytest.raises(ConnectionError, match=reason) as caught:
        download(url)
    check_advice(str(caught.value), url)
    assert leftovers(tmp_path) == []


FETCH = """from helpers.text import corpus
corpus.TEXT8_SHA256 = sys.argv[1]
corpus.load_corpus("text8", mirror=sys.argv[2], cache_dir=sys.argv[3])"""


def test_two_processes_download_once_and_say_that_they_wait(tmp_path, payload):
    with serving(payload) as server:
        with FileLock(tmp_path / "text8.zip.lock"):
            both = [python(FETCH, hashlib.sha256(payload).hexdigest(), server.url, tmp_path) for _ in range(2)]
            waiting = "Waiting for another process to download text8.zip; it holds "
            assert all(process.stdout.readline().startswith(waiting) for process in both)
        answers = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0], answers
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


def test_planted_truth():
    assert planted_twin("t03c07a") == "t03c07b" and planted_twin("t03c07b") == "t03c07a"
    assert planted_topic("t03c07a") == 3
    for word in ("f00", "t20c00a", "t03c15b", "t03c07c", "UNK"):
        with pytest.raises(ValueError, match=word):
            planted_topic(word)
        with pytest.raises(ValueError, match=word):
            planted_twin(word)


def test_planted_frequencies():
    counts = Counter(load_corpus("planted").words)
    function = [counts.pop(f"f{i:02}") for i in range(50)]
    assert 0.34 < sum(function) / 200_000 < 0.36
    assert function[0] / function[9] == pytest.approx(10, rel=0.15)
    assert len(counts) == 20 * 15 * 2 and min(counts.values()) >= 30
    assert max(counts.values()) > 4 * min(counts.values())


def test_planted_truth_is_recovered_by_ppmi_and_svd():
    """Levy and Goldberg (2014): skip-gram factorises a shifted PMI matrix; here the matrix is factorised outright."""
    names, ids = np.unique(load_corpus("planted").words, return_inverse=True)
    pairs = np.zeros((len(names), len(names)))
    for distance in range(1, 6):
        np.add.at(pairs, (ids[:-distance], ids[distance:]), 1.0)
    pairs += pairs.T
    expected = pairs.sum(1, keepdims=True) * pairs.sum(0) / pairs.sum()
    ppmi = np.log(np.maximum(pairs / expected, 1.0))
    left, values, _ = svds(ppmi, 100, random_state=0)
    vectors = left * np.sqrt(values)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    content = np.flatnonzero(np.char.startswith(names, "t"))
    similarity = vectors[content] @ vectors[content].T
    np.fill_diagonal(similarity, -1.0)
    words = names[content].tolist()
    nearest = [words[i] for i in similarity.argmax(1)]
    twins = np.mean([planted_twin(word) == near for word, near in zip(words, nearest, strict=True)])
    topics = np.mean([planted_topic(word) == planted_topic(near) for word, near in zip(words, nearest, strict=True)])
    print(f"twins {twins:.3f}, topics {topics:.3f}")
    assert twins >= 0.95 and topics >= 0.99


def test_planted_needs_a_word():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        load_corpus("planted", n_words=0)


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


def test_missing_file():
    with pytest.raises(FileNotFoundError, match="'docs', 'planted' and 'text8'"):
        load_corpus("nowhere/my.txt")


@pytest.mark.parametrize("name", ["text9", None, 8])
def test_unknown_name(name):
    with pytest.raises(ValueError, match=f"no corpus {name!r}: give 'docs', 'text8', 'planted' or the path"):
        load_corpus(name)


@pytest.mark.parametrize("suffix", ["txt", "gz", "zip"])
def test_random_bytes_are_no_text(tmp_path, suffix):
    path = write(tmp_path / f"noise.{suffix}", np.random.default_rng(0).bytes(1_000_000))
    with pytest.raises(ValueError, match=rf"noise\.{suffix} is no text: of its first [\d,]+ bytes [\d,]+ are control"):
        load_corpus(path)


def test_text_with_few_letters_is_a_text(tmp_path):
    (tmp_path / "text.txt").write_text("1\t2\x0c\r\n" * 1_000 + "one 한국어 " * 3, encoding="utf-8")
    assert load_corpus(tmp_path / "text.txt").words == ["one"] * 3


def test_text_without_words(tmp_path):
    (tmp_path / "numbers.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"numbers\.txt holds 0 words"):
        load_corpus(tmp_path / "numbers.txt")


@pytest.mark.parametrize("name", ["text.gz", "text.zip"])
@pytest.mark.parametrize("cut", [30, 10_000])
def test_damaged_archives(tmp_path, name, cut):
    path = write(tmp_path / name, TEXT.encode())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        load_corpus(path)


def test_zip_with_several_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("one", "a")
        archive.writestr("two", "b")
    with pytest.raises(ValueError, match="holds 2 files"):
        load_corpus(Path(tmp_path, "two.zip"))
