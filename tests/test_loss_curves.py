"""Where a loss curve of lesson 09 stays below a level."""

import numpy as np
import pytest

from lesson_parts.loss_curves import stays_below


def test_the_last_crossing_counts_and_a_curve_that_ends_above_has_none():
    curves = [[[3, 1, 1, 1], [3, 1, 3, 1]], [[3, 1, 1, 3], [3, 3, 3, 3]]]
    found = stays_below(2, [0, 10, 20, 30], curves)
    assert np.array_equal(found, [[5, 25], [np.inf, np.inf]])


def test_a_curve_that_begins_below_is_there_at_once():
    assert stays_below(2, [0, 10, 20], [1, 1, 1]) == 0


def test_a_curve_that_ended_early_is_no_curve():
    with pytest.raises(ValueError, match="3 losses at 4 places"):
        stays_below(2, [0, 10, 20, 30], [3, 1, 1])
