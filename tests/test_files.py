"""A file appears whole or not at all."""

import pytest

from helpers.text.files import written_whole


def test_nothing_is_to_be_seen_before_the_end(tmp_path):
    path = tmp_path / "a.txt"
    with written_whole(path) as file:
        file.write("ü\n")
        assert not path.exists()
    assert path.read_bytes() == "ü\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), written_whole(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_at_the_same_path_do_not_mix(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    with written_whole(path) as first:
        first.write("first")
        monkeypatch.setattr("os.getpid", lambda: 1)
        with written_whole(path) as second:
            second.write("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
