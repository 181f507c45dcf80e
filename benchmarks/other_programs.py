"""Any program that takes word2vec.c's options, for `python -m benchmarks.words_per_second --against COMMAND`.

Its speed is what it reports itself, the last such number in its output:
- word2vec.c prints `Words/thread/sec: 123.45k`, of one thread: times the threads. It divides by the processor time of
  all threads, so that other work on the same cores does not slow it down in this number;
- pWord2Vec and others print `Words/sec: 1234.5k`, of all threads and by the clock on the wall.
Both count the words of their vocabulary and the ends of lines. A program that reports nothing is timed from its start
to its end, which includes its vocabulary and its files.

word2vec.c has no option for a seed: each further seed of the benchmark repeats the same run.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers.text.vocab import Vocab
from helpers.word2vec.vectors import load_vectors

SENTENCE = 1_000  # words of a line; word2vec.c cuts longer ones
SPEED = re.compile(r"words/(thread/)?sec: *(\d+(?:\.\d+)?) *([km]?)", re.IGNORECASE)
UNITS = {"": 1, "k": 1e3, "m": 1e6}
SKIP_GRAM = {"cbow": 0, "hs": 0, "binary": 0}  # and vectors as text


@dataclass(frozen=True)
class Text:
    """words: list of str. vocab: its frequent ones. ids: int32, as many as words. file: the words in lines."""

    words: list
    vocab: Vocab
    ids: np.ndarray
    file: Path

    @classmethod
    def write(cls, words, vocab, file):
        """Write the words to `file` once, for all systems that read it."""
        with open(file, "w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(" ".join(words[i : i + SENTENCE]) + "\n" for i in range(0, len(words), SENTENCE))
        return cls(words, vocab, vocab.encode(words), file)

    def counted(self):
        """The words that word2vec.c counts in an epoch: those of its vocabulary and the ends of lines."""
        return int(self.vocab.counts[1:].sum()) + -(-len(self.words) // SENTENCE)


class ProgramFailure(Exception):
    """Another program failed or wrote no vectors; one sentence says which and how."""


@dataclass(frozen=True)
class Program:
    """A program with word2vec.c's options. command: list of str, its options follow."""

    command: list

    @classmethod
    def find(cls, text):
        """The Program of a command line, split as a shell does. ProgramFailure when there is none to run."""
        try:
            command = shlex.split(text)
        except ValueError as error:
            raise ProgramFailure(f"--against {text} cannot be split into words: {error}") from None
        if not command:
            raise ProgramFailure("--against needs a command, and this one is empty")
        if not shutil.which(command[0]):
            raise ProgramFailure(f"--against {text}: there is no program {command[0]} that can be run")
        return cls(command)

    @property
    def name(self):
        """The file name of the last word that can be run: "word2vec" of "taskset -c 0,1 ./word2vec"."""
        return Path([word for word in self.command if shutil.which(word)][-1]).name

    def train(self, text, settings):
        """Train on a file of lines: (its KeyedVectors, the words/s that it reports or None, seconds that it ran).

        settings: dict of word2vec.c's options without their "-", "threads" among them.
        ProgramFailure when it fails or writes no vectors; no process and no file of it is left, also by Ctrl-C.
        """
        with tempfile.TemporaryDirectory(prefix="w2v-") as folder:  # a short path: word2vec.c holds 99 characters
            vectors, log = Path(folder, "vectors.txt"), Path(folder, "log.txt")
            given = {"train": text, "output": vectors, **settings, **SKIP_GRAM}
            begin = time.perf_counter()
            code = run_to_its_end([*self.command, *(f"{x}" for k, v in given.items() for x in (f"-{k}", v))], log)
            seconds = time.perf_counter() - begin
            output = log.read_text("utf-8", "replace")
            if code:
                raise ProgramFailure(f"{self.name} failed with exit code {code}: {last_line(output)}")
            return self.read(vectors), reported_speed(output, settings["threads"]), seconds

    def read(self, path):
        """The KeyedVectors that it wrote to `path`. ProgramFailure when there are none."""
        if not path.is_file() or not path.stat().st_size:
            raise ProgramFailure(f"{self.name} ended, but it wrote no vectors to the file of its option -output")
        try:
            return load_vectors(path)
        except ValueError as error:
            raise ProgramFailure(f"{self.name} wrote vectors that cannot be read: {error}") from error


def run_to_its_end(command, log):
    """The exit code of a command whose output goes to the file `log`. No process of its group outlives this call.

    Call it in the main thread.
    """
    options = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "start_new_session": True}
    process, interrupts = None, []  # Ctrl-C is noted while Popen is at work: nobody knows the process yet
    handler = signal.signal(signal.SIGINT, lambda *given: interrupts.append(given)) or signal.SIG_DFL
    try:
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdout=file, **options)
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, handler)
        if process:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: no permission to kill a zombie
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def reported_speed(output, threads):
    """The last words/s in a program's output (str), of all its threads; None where it reports none."""
    found = SPEED.findall(output)
    if not found:
        return None
    of_one_thread, number, unit = found[-1]
    return float(number) * UNITS[unit.lower()] * (threads if of_one_thread else 1) or None


def last_line(output):
    """The last line with something in it, "\\r" ends a line as well."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")


def times_of(speed, wall, words):
    """The times of a run over so many words: seconds by its speed (words/s), where that is None those on the wall."""
    return {"seconds": words / speed if speed else wall, "wall_seconds": wall, "reports_speed": speed is not None}


def median_times(runs):
    """For the row of these runs (list of dict): wall_seconds, and whether each of them reported its speed."""
    wall = statistics.median(run["wall_seconds"] for run in runs)
    return {"wall_seconds": wall, "reports_speed": all(run["reports_speed"] for run in runs)}


def how_timed(row):
    """One sentence under the table: where the seconds of a program's row are from."""
    whole = f"{row['system']}: the whole program takes {row['wall_seconds']:,.1f} s"
    return f"{whole}; its speed is what it reports." if row["reports_speed"] else f"+ {whole}, it reports no speed."
