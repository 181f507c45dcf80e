"""For lesson 01: of many steps the one that its charts draw."""

import numpy as np


def warm_steps(steps_of_ranks, skip=2):
    """The steps after the first ones: of each its spans, rank by rank, on a clock that begins with the step.

    steps_of_ranks: of each rank its steps, each a list of (what, begin, end). skip: how many steps warm up.
    """
    steps = []
    for step in list(zip(*steps_of_ranks))[skip:]:
        zero = min(spans[0][1] for spans in step)
        steps.append([[(what, begin - zero, end - zero) for what, begin, end in spans] for spans in step])
    return steps


def median_step(steps):
    """One step for `gantt`: each bar goes from the median of its beginnings to the median of its ends.

    steps: those of `warm_steps`, all with the same bars in the same order.
    """
    median = []
    for steps_of_rank in zip(*steps):
        bars = []
        for same_bar in zip(*steps_of_rank):
            whats, begins, ends = zip(*same_bar)
            bars.append((whats[0], np.median(begins), np.median(ends)))
        median.append(bars)
    return median
