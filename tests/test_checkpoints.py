"""The checkpoints of notebook 10, as they are shown there: equal to the last bit, whole or not at all, one sentence."""

import json
import multiprocessing
import os
import random
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from shown import shown

from helpers.cluster import connect

book = shown("10")
TEXT = np.random.default_rng(0).integers(0, 50, 1_000)
RECIPE = book.Recipe(vocab=50, dim=4, batch=64, negatives=8)
BIASES = np.zeros(50, np.float32)


class Variable:
    """What a checkpoint needs of a tf.Variable; a forked process can use it."""

    def __init__(self, value):
        self.value = np.float32(value)
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def numpy(self):
        return self.value

    def assign(self, value):
        self.value = value


def model(distribute=None, biases=BIASES):
    tables, optimizer, variables = book.start_model(RECIPE, biases)
    return book.make_training_step(tables, optimizer, RECIPE, distribute), variables


def advance(train_one, progress, steps, rank=0, size=1):
    for _ in range(steps):
        train_one(progress, TEXT, rank, size)


def differ(one, other):
    return book.largest_difference(one, other)


def part_off(one, other, start):
    """The length of the difference of two results, as part of the way from a start."""
    off, way = (sum(np.sum((a - b) ** 2) for a, b in zip(one[:3], far[:3], strict=True)) for far in (other, start))
    return (off / way) ** 0.5


# ---- one process


def saved_run(path, steps):
    """A model that was saved after so many steps: its step, its variables, its progress."""
    train_one, variables = model()
    progress = book.Progress()
    advance(train_one, progress, steps)
    book.save_checkpoint(path, variables, progress)
    return train_one, variables, progress


def test_a_restored_run_is_the_uninterrupted_one_across_an_epoch(tmp_path):
    train_one, variables, progress = saved_run(tmp_path / "model", 10)
    advance(train_one, progress, 10)
    assert progress.epoch == 1, "the text is long enough to hide a lost position"
    again, others = model(biases=BIASES + 1)
    restored = book.restore_checkpoint(tmp_path / "model", others)
    assert restored.step == 10
    advance(again, restored, 10)
    assert restored == progress and differ(book.values(variables), book.values(others)) == 0


def test_what_is_not_restored_changes_the_run(tmp_path):
    train_one, variables, progress = saved_run(tmp_path / "model", 20)
    advance(train_one, progress, 5)
    whole = book.values(variables)
    for forgotten in (None, "epoch", "position", "random"):
        restored = book.restore_checkpoint(tmp_path / "model", variables)
        if forgotten:
            setattr(restored, forgotten, getattr(book.Progress(), forgotten))
        advance(train_one, restored, 5)
        assert (differ(whole, book.values(variables)) > 1e-4) == bool(forgotten)


def test_no_word_is_lost_or_doubled_when_the_size_changes():
    progress, sizes, seen = book.Progress(), [2, 1, 3, 3, 2, 4, 1], []
    while progress.epoch == 0:
        words = book.next_words(progress, 1_000, 64)
        size = sizes[len(seen) % len(sizes)]
        seen += [int(word) for rank in range(size) for word in words[book.part_of(len(words), rank, size)]]
    assert sorted(seen) == list(range(1_000)) and progress.position == 0


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, 0.99, -1])
def test_a_truncated_file_is_refused_in_one_sentence(tmp_path, kept):
    _, variables = model()
    path = tmp_path / "model"
    book.save_checkpoint(path, variables, book.Progress())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    refused(path, variables, "no whole checkpoint")


def refused(path, variables, why):
    before, content = book.values(variables), path.read_bytes()
    with pytest.raises(ValueError, match=why) as error:
        book.restore_checkpoint(path, variables)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert differ(before, book.values(variables)) == 0 and path.read_bytes() == content


def test_foreign_newer_and_wrong_files_are_refused_and_nothing_is_changed(tmp_path, monkeypatch):
    _, variables = model()
    path = tmp_path / "model"
    path.write_bytes(random.Random(0).randbytes(10_000))
    refused(path, variables, "no whole checkpoint")
    np.savez(path.with_suffix(".npz"), header=json.dumps({"format": "else"}), v0=np.zeros(3))
    refused(path.with_suffix(".npz"), variables, "is a else, version None; this program reads")
    monkeypatch.setattr(book, "VERSION", 2)
    book.save_checkpoint(path, variables, book.Progress())
    monkeypatch.undo()
    refused(path, variables, "version 2; this program reads a word2vec checkpoint, version 1")
    book.save_checkpoint(path, variables[:-1], book.Progress())
    refused(path, variables, "has .* variables, the model")
    wider = [Variable(np.zeros([v.shape[0] + 1, *v.shape[1:]])) if len(v.shape) else v for v in variables]
    book.save_checkpoint(path, wider, book.Progress())
    refused(path, variables, r"variable 0 is \(\(51, 4\), 'float32'\), not \(\(50, 4\), 'float32'\)")
    path.unlink()
    with pytest.raises(ValueError, match="model is no whole checkpoint: .*No such file"):
        book.restore_checkpoint(path, variables)


def fill_the_disk(path, largest, answer):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        book.save_checkpoint(path, [Variable(np.ones(10_000))], book.Progress())
    except OSError as error:
        answer.send(str(error))
    answer.send("saved")


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path):
    path, variables = tmp_path / "model", [Variable(np.zeros(10_000))]
    book.save_checkpoint(path, variables, book.Progress())
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=fill_the_disk, args=(path, 5_000, theirs))
    child.start()
    assert ours.poll(20)
    assert ours.recv() == f"{path} is not saved: File too large; the previous one is whole"
    child.join()
    book.restore_checkpoint(path, variables)
    assert not variables[0].value.any() and os.listdir(tmp_path) == ["model"]


def save_for_ever(path):
    progress = book.Progress()
    while True:
        progress.step += 1
        book.save_checkpoint(path, [Variable(np.full(100_000, progress.step))], progress)


def test_a_process_killed_while_it_saves_leaves_a_whole_checkpoint_twenty_times(tmp_path):
    path, variables, steps, caught = tmp_path / "model", [Variable(np.zeros(100_000))], [], 0
    book.save_checkpoint(path, variables, book.Progress())
    for number in range(20):
        child = multiprocessing.get_context("fork").Process(target=save_for_ever, args=(path,))
        child.start()
        deadline = time.monotonic() + 20
        while book.read_checkpoint(path)[0]["step"] in (0, *steps[-1:]) and number == 0:
            assert time.monotonic() < deadline
        time.sleep(random.Random(number).uniform(0.02, 0.12))
        child.kill()
        child.join()
        caught += Path(f"{path}.part").exists()
        steps.append(book.restore_checkpoint(path, variables).step)
        assert (variables[0].value == steps[-1]).all()
    assert caught, "no process was killed while it wrote"


# ---- ranks


def interrupted_on_ranks(path):
    """Ten steps, a checkpoint, ten more; and the same from the checkpoint."""
    hvd, size = book.hvd, (book.hvd.rank(), book.hvd.size())
    train_one, variables = model(hvd.DistributedGradientTape)
    progress = book.Progress()
    advance(train_one, progress, 10, *size)
    if hvd.rank() == 0:
        book.save_checkpoint(path, variables, progress)
    advance(train_one, progress, 10, *size)
    return book.values(variables), continued_on_ranks(path)


def continued_on_ranks(path):
    hvd = book.hvd
    train_one, variables = model(hvd.DistributedGradientTape, BIASES + 1 + hvd.rank())
    progress = book.restore_on_ranks(path, variables)
    advance(train_one, progress, 10, hvd.rank(), hvd.size())
    return book.values(variables)


def refused_on_ranks(path):
    _, variables = model()
    try:
        book.restore_on_ranks(path, variables)
    except ValueError as error:
        return str(error)


def test_a_checkpoint_of_two_ranks_goes_on_with_two_one_and_three(tmp_path):
    import sys

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    path = tmp_path / "model"
    with connect(2, attach=False) as ranks:
        (whole, again), (other, _) = ranks.run(interrupted_on_ranks, path)
        (tmp_path / "bad").write_text("no checkpoint")
        said = ranks.run(refused_on_ranks, tmp_path / "bad")
    assert differ(whole, other) == 0 and differ(whole, again) == 0
    assert said[0] == said[1] and "no whole checkpoint" in said[0]
    train_one, variables = model()
    progress = book.restore_checkpoint(path, variables)
    start = book.values(variables)
    advance(train_one, progress, 10)
    assert part_off(whole, book.values(variables), start) < 0.01
    with connect(3, attach=False) as ranks:
        three = ranks.run(continued_on_ranks, path)
    assert differ(three[0], three[2]) == 0 and part_off(whole, three[0], start) < 0.01
