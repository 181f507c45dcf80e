"""Checks of the exercises: each prints "correct", or "not yet" with a hint, and returns whether the answer is right."""

from collections import Counter

import numpy as np


def _try(fn, *args):
    """(what fn returned, None) or (None, the hint for an answer that is not written yet)."""
    try:
        answer = fn(*args)
    except NotImplementedError:
        answer = None
    return answer, "replace the body of the function with your answer" if answer is None else None


def _say(right, hint):
    print("correct" if right else f"not yet: {hint}")
    return bool(right)


def check_average_on_ranks(fn):
    """00: fn(tensors), a list of one list of float per rank, returns what `hvd.allreduce` gives to each rank."""
    answer, hint = _try(fn, [[2.0, 4.0], [6.0, 0.0], [1.0, 2.0]])
    rows = [] if answer is None else [[float(value) for value in row] for row in answer]
    if hint is None and len(rows) != 3:
        hint = f"three ranks take part and each gets a result, yours has {len(rows)}"
    elif hint is None and rows[0] == [9.0, 6.0]:
        hint = "that is the sum; allreduce divides it by the number of ranks unless told otherwise"
    elif hint is None and rows[1:] != rows[:1] * 2:
        hint = "after an allreduce every rank holds the same numbers"
    return _say(rows == [[3.0, 2.0]] * 3, hint or f"from [2, 4], [6, 0], [1, 2] each rank gets [3, 2], not {rows[0]}")


def check_global_mean(fn):
    """00: fn(means, counts), a mean and a number of examples per rank, returns the mean over all examples."""
    answer, hint = _try(fn, [1.0, 4.0], [30, 10])
    if hint is None and abs(answer - 2.5) < 1e-9:
        hint = "2.5 is the mean of the means; rank 0 has three times as many examples, so it must weigh more"
    right = answer is not None and abs(answer - 1.75) < 1e-9
    return _say(right, hint or f"means 1.0 and 4.0 of 30 and 10 examples: add up the 40 examples; you have {answer}")


def check_coverage(fn):
    """01: fn(counts, size), a Counter and a number of rows with UNK, returns the share of the text with own ids."""
    answer, hint = _try(fn, Counter("aaaabbbccd"), 3)
    if hint is None and abs(answer - 0.9) < 1e-9:
        hint = "UNK takes one of the rows, so size=3 leaves room for two words"
    right = answer is not None and abs(answer - 0.7) < 1e-9
    return _say(right, hint or f"of aaaabbbccd, size=3 covers the 4 a and the 3 b, 0.7 of the text; you have {answer}")


def check_paper_keep(fn):
    """01: fn(share, threshold), two floats, returns the keep probability of the paper's formula."""
    answer, hint = _try(fn, 0.04, 1e-4)
    right = answer is not None and abs(answer - 0.05) < 1e-9
    if hint is None and abs(answer - 0.0525) < 1e-9:
        hint = "that is the formula of word2vec.c; the paper has the square root alone"
    elif hint is None and right and fn(1e-5, 1e-4) != 1:
        right, hint = False, f"a rare word gets {fn(1e-5, 1e-4):.2f}, but a probability is at most 1"
    return _say(right, hint or f"share 0.04 and threshold 1e-4 give sqrt(0.0025) = 0.05; you have {answer}")


def check_tree_merge(fn):
    """01: fn(counters), a list of Counters, returns (their sum, the number of rounds of merging in pairs)."""
    hint = None
    for n, rounds in ((1, 0), (2, 1), (4, 2), (5, 3), (8, 3)):
        counters = [Counter({"all": 1, f"rank {rank}": rank + 1}) for rank in range(n)]
        answer, hint = _try(fn, [counter.copy() for counter in counters])
        if hint is None and answer[0] != sum(counters, Counter()):
            hint = f"with {n} counters the sum is wrong (is one left over when their number is odd?)"
        elif hint is None and answer[1] != rounds:
            hint = f"{n} counters need {rounds} round(s) of merging in pairs; you have {answer[1]}"
        if hint:
            break
    return _say(hint is None, hint)


def check_plan(fn):
    """Notebook 05: learning rate and steps of each of `size` ranks."""
    answer, hint = _try(fn, 0.5, 1000, 4)
    return _say(answer == (2.0, 250), hint or "4 ranks see 4 batches in each step: fewer steps, each of them longer")


def check_rank_weight(fn):
    """Notebook 05: the factor that makes the average of means the mean over all pairs."""
    answer, hint = _try(fn, 1, [1, 3])
    hint = hint or "with batches of 1 and 3 pairs, rank 1 has 3 of 4 pairs, and the average divides by 2"
    return _say(answer == 1.5 and fn(0, [5, 5, 5]) == 1, hint)


def check_average_of_slices(fn):
    """Notebook 05: the average of sparse gradients, dense."""
    slices = [([0, 2, 2], np.ones([3, 2])), ([2], np.full([1, 2], 4.0))]
    answer, hint = _try(fn, slices, 4)
    right = answer is not None and np.array_equal(answer, [[0.5, 0.5], [0, 0], [3, 3], [0, 0]])
    return _say(right, hint or "row 2 comes three times, 1 + 1 + 4, and the sum is divided by the number of ranks")


def check_expected_pairs(fn):
    """02: fn(n, window) returns the mean number of skip-gram pairs of n words with a shrinking window."""
    answer, hint = _try(fn, 100, 5)
    right = answer is not None and abs(answer - 586) < 1e-6
    if hint is None and answer in (600, 970, 990, 1000):
        hint = f"{answer:g} forgets that a window shrinks, or that it stops at the ends of the text"
    elif hint is None and right and abs(fn(10, 1) - 18) > 1e-6:
        right, hint = False, f"10 words with window=1 give 18 pairs; you have {fn(10, 1)}"
    return _say(right, hint or f"add up 2 * (n - d) * (probability of distance d); n=100, window=5 gave {answer}")


def check_cbow(fn):
    """02: fn(ids, window) returns (contexts [n - 2 * window, 2 * window], centers [n - 2 * window])."""
    answer, hint = _try(fn, np.arange(10, 22), 2)
    if hint is None and np.shape(answer[0]) != (8, 4):
        hint = f"12 words with window=2 need contexts of shape (8, 4); yours have {np.shape(answer[0])}"
    elif hint is None and list(answer[1]) != list(range(12, 20)):
        hint = f"in the text 10, 11, ... 21 with window=2 the centers are 12 to 19; yours are {list(answer[1])}"
    elif hint is None:
        wrong = [c for row, c in zip(*answer, strict=True) if sorted(row) != [c - 2, c - 1, c + 1, c + 2]]
        hint = f"the contexts of the word at place {wrong[0] - 10} are wrong" if wrong else None
    return _say(hint is None, hint)


def check_sentence_pairs(fn):
    """02: fn(sentences, window), a list of int arrays, returns (centers, contexts) within the sentences."""
    answer, hint = _try(fn, [np.arange(5), np.array([7]), np.arange(9, 12)], 2)
    if hint is None:
        pairs = Counter((int(a), int(b)) for a, b in zip(*answer, strict=True))
        ends = [range(5), range(7, 8), range(9, 12)]
        due = Counter((a, b) for s in ends for a in s for b in s if 0 < abs(a - b) <= 2)
        extra, missing = pairs - due, due - pairs
        if extra:
            hint = f"the pair {next(iter(extra))} is too much: sentences 0-4, 7 and 9-11, window=2, each pair once"
        elif missing:
            hint = f"the pair {next(iter(missing))} is missing: sentences 0-4, 7 and 9-11, window=2"
    return _say(hint is None, hint)
