"""The checkpoints of lesson 21 where the lesson itself does not look: files broken in other ways, full disks."""

import json
import os
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from shown import shown

from lesson_parts.killed import kill_after

MARKS = (
    "class Progress", "import Recipe", "def start_model", "def as_arrays", "def read_checkpoint",
    "def save_checkpoint", "def restore_checkpoint", "def largest_difference",
)  # fmt: skip
book = shown("21", *MARKS)
RECIPE = book.Recipe(vocab=50, dim=4)


def values(variables):
    return [variable.numpy() for variable in variables]


@pytest.fixture
def saved(tmp_path):
    """A path, and the variables that were saved there."""
    _, _, variables = book.start_model(RECIPE, np.zeros(50, np.float32))
    book.save_checkpoint(tmp_path / "model", variables, book.Progress())
    return tmp_path / "model", variables


def test_a_broken_file_is_refused_in_one_sentence_and_nothing_is_changed(saved):
    """Cut anywhere; or with a bit that names a cipher or a compression, for which zipfile has errors of its own."""
    path, variables = saved
    whole, before = path.read_bytes(), values(variables)
    broken = [(whole[:kept], "") for kept in (0, 1, 100, len(whole) // 2, len(whole) - 1)]
    for place, what in ((8, "encrypted"), (10, "compression")):
        content = bytearray(whole)
        content[content.index(b"PK\x01\x02") + place] ^= 1
        broken.append((content, what))
    for content, what in broken:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"model is no whole checkpoint.*{what}") as error:
            book.restore_checkpoint(path, variables)
        assert "\n" not in str(error.value)
    assert book.largest_difference(before, values(variables)) == 0


def test_a_file_without_a_recipe_or_a_field_is_refused_and_nothing_is_changed(saved):
    """Else rank 0 alone would fail, halfway, and the others wait for its broadcast."""
    path, variables = saved
    header, arrays = book.read_checkpoint(path)
    for variable in variables[:2]:
        variable.assign(variable + 1)
    before = values(variables)
    with pytest.raises(ValueError, match="model: batch is None, not 64"):
        book.restore_checkpoint(path, variables, {"batch": 64})
    del header["random"]
    with open(path, "wb") as file:
        np.savez(file, header=json.dumps(header), **{f"v{i}": array for i, array in enumerate(arrays)})
    with pytest.raises(ValueError, match="model lacks one of step, epoch, position, random"):
        book.restore_checkpoint(path, variables)
    assert book.largest_difference(before, values(variables)) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_a_full_disk_leaves_the_previous_checkpoint(saved):
    path, variables = saved
    whole = path.read_bytes()
    path.with_name("model.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="model is not saved: No space left on device; the previous file is unchanged"):
        book.save_checkpoint(path, variables, book.Progress())
    assert path.read_bytes() == whole and os.listdir(path.parent) == ["model"]


def write_and_wait(path):
    path.write_text(str(os.getpid()))
    time.sleep(600)


def test_a_process_that_is_killed_has_begun_and_is_gone(tmp_path):
    path = tmp_path / "pid"
    kill_after(0, write_and_wait, path, ready=lambda: path.exists() and path.read_text())
    assert not psutil.pid_exists(int(path.read_text()))
    with pytest.raises(RuntimeError, match="ended by itself"):
        kill_after(0, len, "returns at once", ready=lambda: False)
