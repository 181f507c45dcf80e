"""The checkpoints of lesson 21 where the lesson itself does not look: epochs, broken files, full disks, 3 ranks."""

import json
import os
import sys
import time
from pathlib import Path

import cloudpickle
import numpy as np
import psutil
import pytest
from shown import shown

from helpers.cluster import connect
from lesson_parts import checkpoints
from lesson_parts.killed import kill_after

cloudpickle.register_pickle_by_value(sys.modules[__name__])
MARKS = (
    "class Progress", "import Recipe", "def next_words", "def next_batch", "def compile_update", "def train_one",
    "def save_checkpoint", "def read_checkpoint", "def restore_checkpoint", "def restore_on_ranks",
    "def largest_difference",
)  # fmt: skip
book = shown("21", *MARKS)
TEXT = np.random.default_rng(0).integers(0, 50, 1_000)
RECIPE = book.Recipe(vocab=50, dim=4, batch=64, negatives=8)
BIASES = np.zeros(50, np.float32)


def values(variables):
    return [variable.numpy() for variable in variables]


def model(hvd=None, biases=BIASES):
    tables, optimizer, variables = book.start_model(RECIPE, biases)
    return book.compile_update(tables, optimizer, RECIPE, hvd), variables


def advance(update, progress, steps, rank=0, size=1):
    for _ in range(steps):
        book.train_one(update, progress, TEXT, RECIPE, rank, size)


def saved_run(path, steps):
    """A model that was saved after so many steps: its step, its variables, its progress."""
    update, variables = model()
    progress = book.Progress()
    advance(update, progress, steps)
    book.save_checkpoint(path, variables, progress)
    return update, variables, progress


def test_a_restored_run_is_the_uninterrupted_one_across_an_epoch(tmp_path):
    update, variables, progress = saved_run(tmp_path / "model", 10)
    advance(update, progress, 10)
    assert progress.epoch == 1, "the text is long enough to hide a lost position"
    again, others = model(biases=BIASES + 1)
    restored = book.restore_checkpoint(tmp_path / "model", others)
    advance(again, restored, 10)
    assert restored == progress and book.largest_difference(values(variables), values(others)) == 0


def test_what_is_not_restored_changes_the_run(tmp_path):
    update, variables, progress = saved_run(tmp_path / "model", 20)
    advance(update, progress, 5)
    whole = values(variables)
    for forgotten in (None, "epoch", "position", "random"):
        restored = book.restore_checkpoint(tmp_path / "model", variables)
        if forgotten:
            setattr(restored, forgotten, getattr(book.Progress(), forgotten))
        advance(update, restored, 5)
        assert (book.largest_difference(whole, values(variables)) > 1e-4) == bool(forgotten)


def test_a_file_that_is_cut_anywhere_is_refused_in_one_sentence_and_nothing_is_changed(tmp_path):
    path = tmp_path / "model"
    _, variables, _ = saved_run(path, 1)
    whole = path.read_bytes()
    before = values(variables)
    for kept in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match="model is no whole checkpoint") as error:
            book.restore_checkpoint(path, variables)
        assert "\n" not in str(error.value)
    assert book.largest_difference(before, values(variables)) == 0


@pytest.mark.parametrize(("place", "what"), [(8, "encrypted"), (10, "compression")])
def test_a_bit_that_names_a_cipher_or_a_compression_is_refused(tmp_path, place, what):
    """zipfile raises RuntimeError or NotImplementedError there, which is none of the errors of a broken file."""
    path = tmp_path / "model"
    _, variables, _ = saved_run(path, 1)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"model is no whole checkpoint.*{what}"):
        book.restore_checkpoint(path, variables)


@pytest.mark.parametrize("module", [book, checkpoints])
def test_a_header_without_a_field_is_refused_and_nothing_is_changed(tmp_path, module):
    """Else rank 0 alone would fail, halfway, and the others wait for its broadcast."""
    path = tmp_path / "model.npz"
    _, variables, _ = saved_run(path, 1)
    header, arrays = book.read_checkpoint(path)
    del header["random"]
    np.savez(path, header=json.dumps(header), **{f"v{i}": array for i, array in enumerate(arrays)})
    for variable in variables[:2]:
        variable.assign(variable + 1)
    before = values(variables)
    with pytest.raises(ValueError, match="model.npz lacks one of step, epoch, position, random"):
        module.restore_checkpoint(path, variables)
    assert book.largest_difference(before, values(variables)) == 0


@pytest.mark.parametrize("module", [book, checkpoints])
def test_a_file_of_another_recipe_or_without_one_is_refused_and_nothing_is_changed(tmp_path, module):
    path = tmp_path / "model"
    _, variables, progress = saved_run(path, 0)
    mine = {"batch": 64, "lr": 0.1, "text": "abc"}
    before = values(variables)
    with pytest.raises(ValueError, match="model: batch is None, not 64"):
        module.restore_checkpoint(path, variables, mine)
    module.save_checkpoint(path, variables, progress, mine)
    variables[0].assign(variables[0] + 1)
    with pytest.raises(ValueError, match="model: text is abc, not abd"):
        module.restore_checkpoint(path, variables, {**mine, "text": "abd"})
    assert book.largest_difference(before, values(variables)) > 0.5
    assert vars(module.restore_checkpoint(path, variables, mine)) == vars(progress)
    assert book.largest_difference(before, values(variables)) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path):
    path = tmp_path / "model"
    _, variables, _ = saved_run(path, 1)
    whole = path.read_bytes()
    (tmp_path / "model.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="model is not saved: No space left on device; the previous file is unchanged"):
        book.save_checkpoint(path, variables, book.Progress())
    assert path.read_bytes() == whole and os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("call", ["os.fsync", "Path.replace"])
def test_whoever_dies_before_the_file_is_renamed_leaves_the_previous_checkpoint(tmp_path, monkeypatch, call):
    path = tmp_path / "model"
    _, variables, _ = saved_run(path, 1)
    whole = path.read_bytes()

    def die(*arguments):
        raise SystemExit

    owner, _, name = call.partition(".")
    monkeypatch.setattr(getattr(book, owner), name, die)
    with pytest.raises(SystemExit):
        book.save_checkpoint(path, variables, book.Progress(step=2))
    assert path.read_bytes() == whole and path.with_name("model.part").exists()


def write_and_wait(path):
    path.write_text(str(os.getpid()))
    time.sleep(600)


def test_a_process_that_is_killed_has_begun_and_is_gone(tmp_path):
    path = tmp_path / "pid"
    kill_after(0, write_and_wait, path, ready=lambda: path.exists() and path.read_text())
    assert not psutil.pid_exists(int(path.read_text()))
    with pytest.raises(RuntimeError, match="ended by itself"):
        kill_after(0, len, "returns at once", ready=lambda: False)


# ---- ranks


def continued_on_ranks(path):
    hvd = book.hvd
    update, variables = model(hvd, BIASES + 1 + hvd.rank())
    progress = book.restore_on_ranks(path, variables)
    advance(update, progress, 10, hvd.rank(), hvd.size())
    return values(variables)


def refused_on_ranks(path):
    _, variables = model()
    with pytest.raises(RuntimeError) as error:
        book.restore_on_ranks(path, variables)
    return str(error.value)


@pytest.mark.ranks
def test_three_ranks_go_on_as_one_process_and_none_waits_when_rank_0_refuses_the_file(tmp_path):
    path = tmp_path / "model"
    update, variables, progress = saved_run(path, 10)
    start = values(variables)
    advance(update, progress, 10)
    (tmp_path / "bad").write_text("no checkpoint")
    with connect(3) as ranks:
        replicas = ranks.run(continued_on_ranks, path)
        said = ranks.run(refused_on_ranks, tmp_path / "bad")
    assert len(set(said)) == 1 and "bad is no whole checkpoint" in said[0]
    for other in replicas[1:]:
        assert book.largest_difference(replicas[0], other) == 0
    tables = list(zip(values(variables)[:3], replicas[0][:3], start[:3], strict=True))
    off = sum(np.sum((one - other) ** 2) for one, other, _ in tables)
    moved = sum(np.sum((one - begin) ** 2) for one, _, begin in tables)
    assert off < 1e-4 * moved
