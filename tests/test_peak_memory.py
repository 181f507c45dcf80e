"""The memory of lesson 31: the most of a step, and the bars that draw it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lesson_parts import peak_memory
from lesson_parts.peak_memory import stacked_bars


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_stacked_bars_follow_each_other_and_end_with_their_sum(ax):
    stacked_bars(ax, {"a": [1, 2, 4], "b": [3, np.nan, 5]}, ["x", "y", "z"], ["red", "green", "blue"])
    drawn = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert drawn == [(0, 1), (1, 2), (3, 4), (0, 3), (3, 0), (3, 5)]  # nan has no width
    assert [text.get_text().strip() for text in ax.texts] == ["7", "8"]
    assert [text.get_position()[0] for text in ax.texts] == [7, 8]


def test_stacked_bars_begin_at_the_top_and_name_their_parts(ax):
    stacked_bars(ax, {"a": [1, 2], "b": [3, 4]}, ["x", "y"], ["red", "green"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert ax.yaxis_inverted()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y"]
    legend = [patch.get_facecolor() for patch in ax.get_legend().get_patches()]
    assert legend == [bar.get_facecolor() for bar in ax.patches[:2]]


@pytest.mark.skipif(not peak_memory.CLEAR_REFS.exists(), reason="only Linux keeps the peak")
def test_the_peak_begins_anew():
    size = 64 << 20
    np.ones(size, np.uint8).sum()
    with_the_array = peak_memory.peak_memory()
    peak_memory.forget_peak()
    assert peak_memory.peak_memory() < with_the_array - size / 2
    np.ones(size, np.uint8).sum()
    assert peak_memory.peak_memory() > with_the_array - size / 2


def test_peak_of_returns_the_result_and_what_came_on_top(monkeypatch):
    seen = iter([5e6, 8e6])
    monkeypatch.setattr(peak_memory, "forget_peak", lambda: None)
    monkeypatch.setattr(peak_memory, "peak_memory", lambda: next(seen))
    assert peak_memory.peak_of(lambda: "done") == ("done", 3)
