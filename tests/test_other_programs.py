"""Other programs in the benchmark of words/s: what they report, and how they fail or are interrupted."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import psutil
import pytest
from trainers import write_trainer
from waiting import wait_for

from benchmarks import words_per_second
from benchmarks.other_programs import Program, Text, reported_speed, run_to_its_end, times_of
from helpers.text.vocab import Vocab

NO_SCORES = dict.fromkeys(words_per_second.SCORES)
WORD2VEC = "\rAlpha: 0.02  Progress: 5.00%  Words/thread/sec: 99.00k  \rAlpha: 0.01  Words/thread/sec: 123.45k  "


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def against(temporary, tmp_path, monkeypatch):
    """A function that runs the benchmark against a program with this source, without ranks and without gensim."""
    run = {"seconds": 1.0, "pairs": 1, **NO_SCORES}
    monkeypatch.setattr(words_per_second, "run_blocks", lambda *given: run)
    gensim = {**run, "system": "gensim"}
    monkeypatch.setattr(words_per_second, "run_gensim", lambda reads, *given: {**gensim, "reads": reads})
    monkeypatch.setattr(words_per_second, "run_canonical", lambda *given: {"seconds_of_a_pair": 1.0, **NO_SCORES})

    def start(source):
        program = write_trainer(tmp_path / "other", source)
        arguments = ["--corpus", "planted", "--ranks", "3", "--repeats", "1", "--against", shlex.quote(str(program))]
        monkeypatch.setattr(sys, "argv", ["words_per_second", *arguments])
        words_per_second.main()

    return start


@pytest.mark.parametrize(
    "output, speed",
    [
        (WORD2VEC, 4 * 123_450),
        (WORD2VEC + "\rAlpha: 0.01  Progress: 99%  Words/sec: 1234.5k", 1_234_500),
        ("words/sec: 1.5M\nsaved", 1_500_000),
        ("Words/sec: 800", 800),
        ("Words/thread/sec: 0.00k", None),
        ("Words in train file: 12345\n", None),
        ("", None),
    ],
    ids=["word2vec.c", "the last one", "million", "words", "zero", "none", "nothing"],
)
def test_the_last_speed_in_an_output_counts_and_of_a_thread_for_each(output, speed):
    assert reported_speed(output, threads=4) == (speed and pytest.approx(speed))


def test_where_no_speed_is_reported_the_whole_time_counts():
    assert times_of(500.0, 7.0, 1000) == {"seconds": 2.0, "wall_seconds": 7.0, "reports_speed": True}
    assert times_of(None, 7.0, 1000) == {"seconds": 7.0, "wall_seconds": 7.0, "reports_speed": False}


@pytest.mark.parametrize(
    "command, message",
    [
        ("./nowhere -x", "there is no program ./nowhere that can be run"),
        ("", "this one is empty"),
        ("'word2vec", "cannot be split into words: No closing quotation"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_before_the_work(command, message, monkeypatch):
    monkeypatch.setattr(words_per_second, "load_corpus", None)  # would raise
    monkeypatch.setattr(sys, "argv", ["words_per_second", "--against", command])
    with pytest.raises(SystemExit, match=message):
        words_per_second.main()


def test_the_name_of_a_program_is_that_of_the_last_word_that_can_be_run(tmp_path):
    path = write_trainer(tmp_path / "a trainer")
    assert Program.find(f"nice -n 1 '{path}' -alpha 0.05").name == "a trainer"


@pytest.mark.parametrize(
    "source, message",
    [
        ("#!/bin/sh\nprintf '1%%\\r5%%\\rout of memory\\n\\n' >&2; exit 3", "failed with exit code 3: out of memory$"),
        ("#!/bin/sh\nexit 4", "^other failed with exit code 4: it printed nothing"),
        ("#!/bin/sh\necho done", "other ended, but it wrote no vectors to the file of its option -output"),
        ("#!/bin/sh\n: > $4", "other ended, but it wrote no vectors to the file of its option -output"),
        ("#!/bin/sh\necho no vectors at all > $4", "other wrote vectors that cannot be read: .*vectors.txt"),
        ("#!/bin/sh\nprintf '1 2\\nelsewhere 1 2\\n' > $4", "other wrote vectors, but of no word of the text"),
    ],
    ids=["fails", "fails and prints nothing", "writes no file", "an empty file", "another file", "other words"],
)
def test_a_program_that_fails_ends_the_benchmark_with_one_sentence(source, message, against, temporary):
    with pytest.raises(SystemExit, match=message) as raised:
        against(source)
    assert "\n" not in str(raised.value) and not list(temporary.iterdir())


def test_a_program_gets_the_options_of_word2vec_is_timed_as_a_whole_and_scored_by_the_words_that_both_know(
    against, temporary, tmp_path, capsys, monkeypatch
):
    scored = []
    monkeypatch.setattr(words_per_second, "quality", lambda *given: scored.append(given) or NO_SCORES)
    written = "3 2\\n</s> 1 0 \\nt00c00a 2 1 \\nf01 1 2 \\n"
    seen = f"echo $* > {tmp_path}/options\nhead -n 1 $2 | wc -w > {tmp_path}/words"
    against(f"#!/bin/sh\n{seen}\nprintf '{written}' > $4")
    options = (tmp_path / "options").read_text().split()
    assert (options[0], options[2]) == ("-train", "-output")
    rest = "-size 128 -window 5 -negative 5 -sample 0.0001 -min-count 5 -threads 3 -iter 5 -cbow 0 -hs 0 -binary 0"
    assert options[4:] == rest.split()
    assert int((tmp_path / "words").read_text()) == 1_000
    out = capsys.readouterr().out
    assert "+ other: the whole program takes" in out and "it reports no speed" in out
    assert not list(temporary.iterdir())
    [(vectors, words)] = scored
    assert words == ["f01", "t00c00a"] and vectors.tolist() == [[1, 2], [2, 1]]  # the most frequent first


def test_a_text_is_written_in_lines_and_counted_as_word2vec_counts(tmp_path):
    words = ["a"] * 1_500 + ["rare"] + ["b"] * 600
    text = Text.write(words, Vocab(["UNK", "a", "b"], [1, 1_500, 600]), tmp_path / "text.txt")
    lines = text.file.read_text().splitlines()
    assert [len(line.split()) for line in lines] == [1_000, 1_000, 101]
    assert " ".join(lines).split() == words and text.ids.tolist() == [1] * 1_500 + [0] + [2] * 600
    assert text.counted() == 2_100 + 3


def test_gensim_trains_the_same_vocabulary_from_a_list_and_from_a_file(tmp_path):
    words = [f"w{i * i % 7}" for i in range(3_000)]
    file = Text.write(words, Vocab.build(words), tmp_path / "text.txt").file
    for text in (words, file):
        keyed, seconds = words_per_second.train_gensim(text, 2, 1, seed=0, min_count=5)
        assert sorted(keyed.index_to_key) == ["w0", "w1", "w2", "w4"] and seconds > 0
        assert keyed.get_vecattr("w1", "count") == words.count("w1")


@pytest.mark.parametrize("fast, slow", [("list", "file"), ("file", "list")])
def test_the_faster_way_of_gensim_counts_and_names_the_other(fast, slow):
    speeds = {fast: 300.0, slow: 200.0}
    gensim = [{"system": "gensim", "reads": reads, "words_per_s": speeds[reads]} for reads in ("list", "file")]
    others = {"system": "blocks", "words_per_s": 900.0}, {"system": "canonical", "words_per_s": 1.0}
    best = {"system": "gensim", "reads": fast, "words_per_s": 300.0, "other_words_per_s": 200.0}
    assert words_per_second.with_faster_gensim([others[0], *gensim, others[1]]) == [others[0], best, others[1]]


def test_an_interrupt_kills_a_program_with_its_children_and_leaves_no_file(against, temporary, tmp_path):
    """The program interrupts us, as Ctrl-C does, when its child is there, which would come to its end in 20 s."""
    pids, end = tmp_path / "pids", tmp_path / "end"
    with pytest.raises(KeyboardInterrupt):
        against(f"#!/bin/sh\n(sleep 20; : > {end}) &\necho $$ $! > {pids}\nkill -INT $PPID\nwait\n")
    wait_for(lambda: not any(map(alive, map(int, pids.read_text().split()))))
    assert not end.exists() and not list(temporary.iterdir())


def test_an_interrupt_while_a_program_is_being_started_leaves_no_process(monkeypatch, tmp_path):
    started = []

    class Slow(subprocess.Popen):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    monkeypatch.setattr(subprocess, "Popen", Slow)
    with pytest.raises(KeyboardInterrupt):
        run_to_its_end(["sleep", "20"], tmp_path / "log")
    assert started and not any(map(alive, started))


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
