"""What lesson 12 says of its turns."""

import numpy as np

from lesson_parts.turns import who_pays


def test_with_turns_on_both_sides_of_1_it_is_open_whether_a_second_rank_pays():
    turns = {"fast": [1.1, 1.9], "slow": [0.4, 0.9], "both": [0.9, 1.9]}
    shown = {name: {name: {"speed-up": np.array(ratios)}} for name, ratios in turns.items()}
    assert who_pays(shown) == "A second rank pays with fast\nIt is slower with slow\nOpen: both"


def test_without_a_clear_gain_none_of_them_pays_for_certain():
    found = {"speed-up": np.array([0.9, 1.9])}
    assert who_pays({"both": {"both": found}}) == "A second rank pays with none of them for certain\nOpen: both"
