"""The bars of lesson 31; its peak of memory is asserted there, and in lesson 28."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

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
