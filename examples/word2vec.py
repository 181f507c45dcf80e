"""word2vec on your own text, in one process or on any number of ranks and hosts.

    python word2vec.py wiki.txt --out vectors.txt
    horovodrun --gloo -np 2 -H host0:1,host1:1 python word2vec.py wiki.txt --out vectors.txt

mpirun and srun --mpi=pmix start it as well, see word2vec.slurm; with --elastic and a --host-discovery-script of
horovodrun it goes on when ranks are lost, and takes new ones. It needs `helpers` (pip install .), and on ranks
Horovod. A word is a run of the letters a to z, in lower case. Several ranks read the text, --out and --checkpoint under
the same path on each host.

Exit codes: 0 the vectors are written; 65 the text, an option or the checkpoint does not fit; 66 there is no such file;
71 too little memory; 74 a file cannot be read or written; 75 stopped, or another rank was lost: the same line goes on
from the checkpoint; 78 the launcher or a host is set up wrongly.
"""

import argparse
import glob
import importlib.util
import inspect
import json
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import joblib
import numpy as np

from examples import checkpoint as checkpoints
from examples.checkpoint import Failure, together, written
from examples.encode_text import ROW, encode_file

LAUNCHED = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")  # by horovodrun, mpirun, srun --mpi=pmix
USUAL = {  # of the environment of a rank, unless it is set
    "HOROVOD_CYCLE_TIME": "20",  # ms: ranks train while they communicate, so to look every ms is a waste
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "600",  # the others wait while one host encodes the text
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_USE_LEGACY_KERAS": "1",  # TensorFlow imports Keras at once: this one is 80 MB smaller than Keras 3
}
PATIENT = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "120"}  # of elastic ranks, while a new one imports TensorFlow
ELASTIC = "HOROVOD_ELASTIC"  # set by horovodrun with a --host-discovery-script
SIGNALS = signal.SIGTERM, signal.SIGUSR1
STOP = threading.Event()  # set by a signal: save and end
TRAINING = threading.Event()  # set from the first interval on: before that there is nothing to save


# ---- Files


def text_files(texts):
    """The files that names and patterns stand for."""
    return [name for text in texts for name in (sorted(glob.glob(str(text), recursive=True)) or [str(text)])]


def write_text(file, words, vectors):
    """word2vec's text format."""
    file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
    for word, row in zip(words, vectors, strict=True):
        file.write(f"{word} {' '.join(map(str, row))}\n".encode())


def write_binary(file, words, vectors):
    """word2vec's binary format."""
    file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
    for word, row in zip(words, vectors, strict=True):
        file.write(word.encode() + b" " + row.tobytes() + b"\n")


def write_keyed_vectors(file, words, vectors):
    """gensim's KeyedVectors: KeyedVectors.load(path) reads it."""
    from helpers.word2vec.vectors import to_keyed_vectors

    to_keyed_vectors(vectors, words).save(file)


WRITERS = {".txt": write_text, ".bin": write_binary, ".kv": write_keyed_vectors}


def write_vectors(out, words, vectors):
    if not np.isfinite(vectors).all():
        raise ValueError("the vectors hold NaN or infinity: take a smaller --alpha")
    with written(out) as file:
        WRITERS[Path(out).suffix](file, words, vectors)


# ---- What could go wrong after hours is checked before


def check_output(out, files, folders):
    """out: of the rank that writes the vectors, else None."""
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
        check_folder(folder)
    if out is None:
        return
    suffix = Path(out).suffix
    if suffix not in WRITERS:
        raise ValueError(f"--out {out}: its suffix decides the format and has to be one of {', '.join(WRITERS)}")
    if suffix == ".kv" and not importlib.util.find_spec("gensim"):
        raise ValueError("a .kv file needs gensim: pip install gensim, or take .txt or .bin")
    check_new_file(out, files)


def check_new_file(path, files):
    """That a file can be written, and that no text is overwritten."""
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder")
    if Path(path).resolve() in [Path(file).resolve() for file in files]:
        raise ValueError(f"{path} is one of the texts, and would be overwritten")
    check_folder(Path(path).parent)


def check_folder(folder):
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"nothing can be written into the folder {folder}")


def check_same_text(text, hvd):
    found = hvd.allgather_object((text.content, socket.gethostname())) if hvd else []
    others = sorted({host for content, host in found if content != found[0][0]})
    if others:
        raise ValueError(f"the text on {' and '.join(others)} is another one than on {found[0][1]}")


def check_memory(vocab, dim, hvd):
    """The tables twice, as they are made; on ranks also the common ones and those that travel, and elastic copies."""
    from helpers.cluster.engines import available

    tables = 2 * 4 * len(vocab) * dim
    of_rank = 6 if ELASTIC in os.environ else 4
    needed = of_rank * tables * hvd.local_size() if hvd else 2 * tables
    if needed > available():
        here = f"{socket.gethostname()} has {available() / 1e9:.1f} GB"
        what = f"{len(vocab):,} words x {dim} need {needed / 1e9:.1f} GB"
        raise MemoryError(f"{what}, and {here}: take a higher --min-count or a smaller --size")


def shard_of(text, words, rank, ranks):
    if words < ROW * ranks:
        raise ValueError(f"the text has {words:,} words, but each of {ranks} ranks needs {ROW:,}")
    return text.shard(rank, ranks)


# ---- Training


def check_loss(loss):
    if not np.isfinite(loss):
        raise Failure("the loss is no longer a number: take a smaller --alpha", os.EX_DATAERR)


class News:
    """The mean over the ranks of some numbers. They travel while the ranks train, and are known an interval later."""

    def __init__(self, hvd):
        self._hvd = hvd
        self._thread = ThreadPoolExecutor(1)
        self._coming = None

    def tell(self, *numbers):
        self._coming = self._thread.submit(self._mean, np.array(numbers, np.float64))

    def hear(self):
        """What was told the last time; None before that."""
        return self._coming and self._coming.result()

    def close(self):
        """Wait until nothing is on its way: ranks that are formed anew would not expect it."""
        self._thread.shutdown()

    def _mean(self, numbers):
        if not self._hvd:
            return numbers
        return self._hvd.allgather(numbers[np.newaxis]).numpy().mean(axis=0)  # an allreduce is on its way already


def show_nothing(step, steps, said, seconds_left):
    """What `train` does by itself."""


def train(
    texts, out, *, size=128, window=5, negative=5.0, sample=1e-4, min_count=5, epochs=5, alpha=None, seed=0,
    threads=1, checkpoint=None, minutes=5.0, logs=None, blocks=None, show=show_nothing, kept_in_memory=None,
):  # fmt: skip
    """Train on a text and write the vectors; on ranks, all call it after hvd.init().

    texts: names of files, or patterns. out: its suffix is one of WRITERS. size to seed: see --help. threads: of this
    rank; only one of them gives the same vectors each time. checkpoint: a folder to save in every so many minutes; a
    file "stop" in it stops. logs: a folder for TensorBoard. alpha and blocks, which says when ranks exchange what: by
    default those of `schedule` for so many ranks. show(step, steps, said, seconds_left): called on rank 0 between two
    intervals. kept_in_memory: of elastic ranks, a `Kept`.

    Returns a dict about what was done. Failure, on all ranks at once, with a sentence and an exit code.
    """
    run = {"size": size, "window": window, "negative": negative, "sample": sample}
    run |= {"min_count": min_count, "epochs": epochs, "alpha": alpha, "seed": seed}
    hvd = ranks_here()
    rank, ranks = (hvd.rank(), hvd.size()) if hvd else (0, 1)
    seconds, begin = Counter(), time.perf_counter()
    TRAINING.clear()
    files = text_files(texts)
    folders = [each for each in (checkpoint, logs) if each]
    together(hvd, check_output, out if rank == 0 else None, files, folders)
    vocab, text = together(hvd, lambda: encode_file(files, min_count, progress=sys.stdout.isatty()))
    words = int(vocab.counts.sum())
    together(hvd, check_same_text, text, hvd)
    together(hvd, check_memory, vocab, size, hvd)
    shard = together(hvd, shard_of, text, words, rank, ranks)
    seconds["encoding"] = time.perf_counter() - begin

    import tensorflow as tf

    from examples.stopwatch import Stopwatch
    from helpers.word2vec.block_trainer import train_blocks
    from helpers.word2vec.schedule import bounded_changes, schedule

    planned_blocks, planned_rate = schedule(ranks, vocab)
    rate = planned_rate if alpha is None else alpha
    folder = Path(checkpoint) if checkpoint else None
    header = {**run, "text": text.content, "vocabulary": text.words}
    stopwatch, news, now = Stopwatch(hvd), News(hvd), time.perf_counter
    writer = tf.summary.create_file_writer(f"{logs}/rank-{rank}") if logs else tf.summary.create_noop_writer()
    state = first = began = saved = None
    found = {}

    def start(tables, common, steps):
        nonlocal state, first, began, saved
        state, begin = (tables, common), now()
        if kept_in_memory and kept_in_memory.steps:
            kept_in_memory.restore_into(tables, common)
            first = kept_in_memory.step * steps // kept_in_memory.steps
        else:
            saved_as = together(hvd, lambda: folder and rank == 0 and checkpoints.read_header(folder, header))
            saved_as = hvd.broadcast_object(saved_as, 0) if hvd else saved_as
            first = saved_as["step"] * steps // saved_as["steps"] if saved_as else 0
            if saved_as:
                checkpoints.restore(folder, saved_as, tables, common, hvd)
        seconds["restoring"] = now() - begin
        if kept_in_memory and rank == 0:
            print(f"ranks: {ranks}, from interval {first} of {steps}", flush=True)
        TRAINING.set()
        began = saved = now()
        return first

    def save(step, steps):
        nonlocal saved
        if folder:
            begin = now()
            checkpoints.save(folder, {**header, "steps": steps}, step, *state, hvd)
            saved = now()
            seconds["checkpoints"] += saved - begin

    def between_intervals(step, steps, loss, pairs_per_s):
        nonlocal found
        stop, due, copy_due, mean_loss = news.hear() if step > first else (False, False, False, loss)
        if step > first:
            done, spent = (step - first) / steps, now() - began
            mean_loss = loss if step == first + 1 else mean_loss  # what is heard was told before the first interval
            if hvd is None or step > first + 1:
                check_loss(mean_loss)
            found = {"steps": steps, "loss": float(mean_loss), "words_per_s": epochs * words * done / spent}
            tf.summary.scalar("loss", loss, step)
            tf.summary.scalar("words per second of all ranks", found["words_per_s"], step)
            if rank == 0:
                said = f"{found['words_per_s'] / 1e6:.2f} million words/s, loss {mean_loss:.3f}"
                show(step, steps, said, (steps - step) * spent / (step - first))
        if stop or due or step == steps:
            save(step, steps)
        if stop and step < steps:
            if folder and rank == 0:
                (folder / "stop").unlink(missing_ok=True)
            what_now = f"the same line goes on from {folder}" if folder else "nothing is kept without --checkpoint"
            raise Failure(f"stopped after {step} of {steps} intervals: {what_now}", os.EX_TEMPFAIL)
        if step < steps:
            if copy_due:
                kept_in_memory.keep(step, steps, *state, partial(save, step, steps))
            stop = STOP.is_set() or folder and rank == 0 and (folder / "stop").exists()
            due = now() - saved > 60 * minutes
            copy_due = kept_in_memory and kept_in_memory.due()
            news.tell(bool(stop), rank == 0 and due, rank == 0 and bool(copy_due), loss)

    try:
        with writer.as_default():
            vectors = train_blocks(
                shard, vocab, dim=size, window=window, negatives=negative, epochs=epochs,
                lr=rate, threshold=sample, seed=seed, report=between_intervals, watch=stopwatch.watch,
                start=start, merge_changes=bounded_changes,
                blocks=blocks or planned_blocks, threads=threads, hvd=stopwatch.hvd,
            )  # fmt: skip
    except ValueError as error:
        raise Failure(str(error), os.EX_DATAERR) from error
    finally:
        news.close()
        writer.close()
    begin = now()
    together(hvd, lambda: rank or write_vectors(out, vocab.words[1:], vectors[1:]))
    if folder:
        checkpoints.remove(folder)
    seconds["writing"] = now() - begin
    seconds.update({part: spent for part, spent in stopwatch.spent.items() if part != "steps"})
    hosts = hvd.allgather_object(socket.gethostname()) if hvd else [socket.gethostname()]
    about = {"out": str(out), "texts": files, "words": words, "vocabulary": len(vocab) - 1, "hosts": hosts}
    return {**about, "settings": {**run, "alpha": rate}, "first": first, **found, "seconds": seconds}


# ---- As a program


def ranks_here():
    """horovod.tensorflow in a process that is one of several ranks, or an elastic one, else None."""
    hvd = sys.modules.get("horovod.tensorflow")
    several = hvd and hvd.is_initialized() and (hvd.size() > 1 or ELASTIC in os.environ)
    return hvd if several else None


def join_ranks():
    """Call hvd.init() if a launcher has started this process as one of several."""
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))
    if any(name in os.environ for name in LAUNCHED):
        try:
            import horovod.tensorflow as hvd
        except ImportError:
            reason = "ranks need Horovod, compiled beside TensorFlow: see docs/clusters.md"
            raise Failure(reason, os.EX_CONFIG) from None
        loopback = os.environ.get("HOROVOD_GLOO_IFACE", "").startswith("lo")  # names of this one machine
        if int(os.environ.get("HOROVOD_CROSS_SIZE", 1)) > 1 and not loopback:  # Gloo's ranks use a host's own name
            from helpers.cluster.rendezvous import check_own_name

            try:
                check_own_name(socket.gethostname(), socket.gethostbyname(socket.gethostname()))
            except (OSError, ValueError) as error:
                raise Failure(str(error), os.EX_CONFIG) from None
        hvd.init()
    if tasks > 1 and not ranks_here():
        raise Failure(f"the {tasks} processes of this srun do not know each other: srun --mpi=pmix", os.EX_CONFIG)


def choose_threads(wanted):
    """Give this rank so many threads, or what Slurm says, or its share of the cores of its host; returns how many."""
    from helpers.cluster.environment import limit_threads

    share = joblib.cpu_count() // (ranks_here().local_size() if ranks_here() else 1)
    threads = wanted or int(os.environ.get("SLURM_CPUS_PER_TASK", 0)) or max(1, share)
    limit_threads(threads)
    return threads


def make_show(every=30):
    """One live line in a terminal; in a log a line every so many seconds."""
    from helpers.cluster.live_line import LiveLine

    line, told = LiveLine(sys.stdout.isatty()), time.monotonic()

    def show(step, steps, said, seconds_left):
        nonlocal told
        line.show({"step": step, "steps": steps, "said": said})
        if step == steps:
            line.close()
        if not sys.stdout.isatty() and (time.monotonic() - told > every or step == steps):
            told = time.monotonic()
            print(f"{step} of {steps} intervals, {said}, {seconds_left / 60:.0f} minutes left", flush=True)

    return show


def read_options(arguments=None):
    about, _, more = __doc__.partition("\n\n")
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="word2vec.py", description=about, epilog=more, formatter_class=style)
    usual = inspect.signature(train).parameters

    def add(name, kind, what):
        default = usual[name.replace("-", "_")].default
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{what} (default: {default})")

    parser.add_argument("texts", nargs="+", metavar="TEXT", help="a text, also .gz; or several; or a pattern in quotes")
    parser.add_argument("--out", required=True, help="the vectors: .txt and .bin are word2vec's formats, .kv gensim's")
    add("size", int, "numbers of a vector")
    add("window", int, "words to each side")
    add("negative", float, "random words for each pair")
    add("sample", float, "threshold of subsampling")
    add("min-count", int, "words that come less often are left out")
    add("epochs", int, "how often the text is read")
    parser.add_argument("--alpha", type=float, help="learning rate at the start (default: 0.045, more with more ranks)")
    add("seed", int, "the same seed gives the same vectors on as many ranks, with --threads 1")
    parser.add_argument("--threads", type=int, help="of each rank (default: its share of the cores of its host)")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="save there; go on from what is there")
    add("minutes", float, "from one checkpoint to the next")
    parser.add_argument("--elastic", action="store_true", help="go on when ranks are lost, and take new ones")
    parser.add_argument("--logs", metavar="FOLDER", help="for TensorBoard, a folder for each rank in it")
    parser.add_argument("--json", metavar="FILE", help="write there what was done, and how long each part took")
    return vars(parser.parse_args(arguments))


def train_and_report(options, report, kept_in_memory=None):
    """`train`, with a live line, and a file that says what was done."""
    hvd = ranks_here()
    path = report if not hvd or hvd.rank() == 0 else None
    together(hvd, lambda: path and check_new_file(path, text_files(options["texts"])))
    done = train(**options, show=make_show(), kept_in_memory=kept_in_memory)
    together(hvd, lambda: path and write_report(path, done))
    return done


def train_elastic(work):
    """Call work(kept) in elastic ranks: all call it again, from what they have in memory, when one is lost or comes."""
    if ELASTIC not in os.environ:
        raise Failure("--elastic needs horovodrun with a --host-discovery-script", os.EX_CONFIG)
    import horovod.tensorflow as hvd

    from examples.kept_in_memory import Kept

    if hvd.elastic.run(work)(Kept(hvd)) is None:  # Horovod drops an UnknownError of TensorFlow that is not its own
        raise Failure("TensorFlow failed with an UnknownError", os.EX_SOFTWARE)


def stop_by_signal(number, frame):
    STOP.set()
    if not TRAINING.is_set():
        raise Failure("stopped before training; what is encoded is kept", os.EX_TEMPFAIL)


def ignore_signals():
    """A launcher signals ranks that are about to end because of another one."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def write_report(path, done):
    with written(path) as file:
        file.write(json.dumps(done, indent=1).encode())


def main():
    options = read_options()
    threads, report, elastic = (options.pop(name) for name in ("threads", "json", "elastic"))
    for name, value in (USUAL | (PATIENT if elastic else {})).items():
        os.environ.setdefault(name, value)
    for number in SIGNALS:
        signal.signal(number, stop_by_signal)
    try:
        join_ranks()
        options["threads"] = choose_threads(threads)  # before TensorFlow starts
        work = partial(train_and_report, options, report)
        train_elastic(work) if elastic else work()
    except Failure as failure:
        ignore_signals()
        sentence, code = failure.args
        if not ranks_here() or ranks_here().rank() == 0:
            print(f"word2vec.py: {sentence}", file=sys.stderr, flush=True)
        sys.exit(code)
    except Exception as error:
        ignore_signals()
        if not (ranks_here() and "Horovod" in str(error)):
            raise
        why = str(error).partition("\n")[0]
        print(f"word2vec.py: another rank or its host was lost ({why}); start the same line again", file=sys.stderr)
        sys.exit(os.EX_TEMPFAIL)


if __name__ == "__main__":
    main()
