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


def check_nearest(fn):
    """12: fn(vectors, row, n) returns the n rows with the largest cosine to a row, the nearest first."""
    vectors = np.array([[2.0, 0.4], [4.0, 0.0], [10.0, 8.0], [-1.0, 0.0], [30.0, 8.0]])
    answer, hint = _try(fn, vectors, 0, 3)
    found = [] if answer is None else [int(row) for row in answer]
    if hint is None and 0 in found:
        hint = "row 0 is its own nearest; leave it out"
    elif hint is None and len(found) != 3:
        hint = f"3 rows were asked for, and {len(found)} came"
    elif hint is None and found in ([1, 3, 2], [4, 2, 1]):
        hint = "that is the order of distances or of dot products; divide each vector by its length first"
    return _say(found == [4, 1, 2], hint or f"the cosines to row 0 put rows 4, 1, 2 first, yours are {found}")


def check_analogy(fn):
    """12: fn(vectors, a, b, c) returns the row d for which a is to b as c is to d, none of the three given ones."""
    vectors = np.array([[1, 0, 0], [1, 0.2, 0], [0, 0, 2], [0, 0.5, 2.2], [9, 0.5, 30], [8, 5, 9.0]])
    answer, hint = _try(fn, vectors, 0, 1, 2)
    if hint is None and answer in (0, 1, 2):
        hint = f"row {answer} is one of the words that were given; leave those out"
    elif hint is None and answer in (4, 5):
        hint = "vectors of length 1 are meant: long ones have large dot products"
    return _say(answer == 3, hint or f"b - a + c comes nearest to row 3 here, not to row {answer}")


def check_overlap(fn):
    """12: fn(first, second, word, n) returns the share of the n neighbours in one KeyedVectors found in the other's."""
    from helpers.word2vec.export import (
        to_keyed_vectors,  # gensim takes a second to load, and other checks do not need it
    )

    angles = np.radians([0, 10, 20, 30, 40, 50])
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    first = to_keyed_vectors(circle, list("abcdef"))
    second = to_keyed_vectors(circle[[0, 1, 5, 3, 2, 4]], list("abcdef"))
    answers = []
    for other in (first, second):
        answer, hint = _try(fn, first, other, "a", 2)
        if hint:
            return _say(False, hint)
        answers.append(float(answer))
    if answers[1] in (1.0, 2.0) or answers[0] == 2.0:
        hint = "count how many of the n are in both, then divide by n"
    return _say(answers == [1.0, 0.5], hint or f"here 2 of 2 and then 1 of 2 neighbours agree; you have {answers}")


def check_expected_count(fn):
    """03: fn(p, tries) returns the probability that a word is drawn at least once in `tries` draws."""
    answer, hint = _try(fn, 0.5, 3)
    right = answer is not None and abs(answer - 0.875) < 1e-9
    if hint is None and answer in (1.5, 1):
        hint = "p * tries counts repeats too, but a word is at most once among samples that are all different"
    elif hint is None and abs(answer - 0.125) < 1e-9:
        hint = "0.125 is the probability that all 3 draws miss the word"
    return _say(right, hint or f"p=0.5 and tries=3: only one of the 8 outcomes misses the word; you have {answer}")


def check_sgns_biases(fn):
    """03: fn(nce_biases, log_expected), both float [V], returns the biases that give SGNS the logits of NCE."""
    answer, hint = _try(fn, np.array([-3.0, -5.0]), np.array([-1.0, -2.5]))
    right = answer is not None and np.shape(answer) == (2,) and np.allclose(answer, [-2, -2.5])
    if hint is None and np.allclose(answer, [-4, -7.5]):
        hint = "the sign: NCE subtracts log E from its logits, and SGNS has to reach the same logits"
    return _say(right, hint or f"biases [-3, -5] and log E [-1, -2.5] should give [-2, -2.5], not {answer}")


def check_own_negatives(fn):
    """03: fn(rows [batch, dim], true [batch, dim], negatives [batch, k, dim]) returns the mean SGNS loss of a pair."""
    rng = np.random.default_rng(0)
    rows, true, negatives = rng.normal(size=(2, 4)), rng.normal(size=(2, 4)), rng.normal(size=(2, 3, 4))
    answer, hint = _try(fn, rows, true, negatives)
    real = np.logaddexp(0, -(rows * true).sum(axis=1))
    noise = np.logaddexp(0, (rows[:, None] * negatives).sum(axis=2))
    right = answer is not None and np.shape(answer) == () and abs(float(answer) - (real + noise.sum(1)).mean()) < 1e-5
    if hint is None and np.shape(answer) != ():
        hint = f"the mean over the batch is one number; yours has the shape {np.shape(answer)}"
    elif hint is None and abs(float(answer) - (real + noise.mean(1)).mean()) < 1e-5:
        hint = "the losses of a pair's negatives are added up, not averaged"
    return _say(right, hint or "softplus(-z) for the true pair, softplus(z) for each of its own negatives")


def check_part_to_send(fn):
    """04: fn(step, first, size) returns the part that a rank sends when it is to own part `first` in the end."""
    answer, hint = _try(fn, 0, 1, 4)
    if hint is None and not 0 <= answer < 4:
        hint = f"4 ranks have parts 0 to 3, and you send part {answer}: take it modulo the size"
    for first, size in ((1, 4), (0, 4), (3, 4), (0, 3)):
        if hint is None:
            due = [(first - 1 - step) % size for step in range(size - 1)]
            sent = [fn(step, first, size) for step in range(size - 1)]
            if sent != due:
                hint = f"to own part {first} of {size} a rank sends {due}, the part it received before; you send {sent}"
    return _say(hint is None, hint)


def check_adasum(fn):
    """04: fn(a, b), two float arrays, returns their Adasum."""
    a, b = np.array([1.0, 1.0]), np.array([2.0, 0.0])
    answer, hint = _try(fn, a, b)
    if hint is None and np.shape(answer) != (2,):
        hint = f"two vectors of length 2 give one of length 2; yours has the shape {np.shape(answer)}"
    elif hint is None and np.allclose(answer, a + b):
        hint = "that is the plain sum; each vector is shortened first"
    elif hint is None and np.allclose(answer, [1, 0]):
        hint = "each vector is shortened by *half* its projection on the other"
    right = answer is not None and np.shape(answer) == (2,) and np.allclose(answer, [2, 0.5])
    return _say(right, hint or f"[1, 1] and [2, 0] give [2, 0.5]; you have {answer}")


def check_tensors_time(fn):
    """04: fn(tensors, n_bytes, size, latency, bandwidth) returns (seconds without fusion, seconds with fusion)."""
    answer, hint = _try(fn, 10, 1000, 4, 0.5, 1000.0)
    if hint is None and np.shape(answer) != (2,):
        hint = f"two numbers are wanted, without and with fusion; you have {answer}"
    elif hint is None and np.allclose(answer, [15, 10.5]):
        hint = "a rank sends 2 (N - 1)/N times the message, not the message once"
    elif hint is None and np.allclose(answer, [20, 20]):
        hint = "fused, the ten tensors pay the latency once"
    right = hint is None and np.allclose(answer, [20, 15.5])
    return _say(right, hint or f"10 tensors of 1000 bytes, 4 ranks, 0.5 s, 1000 bytes/s: 20 s and 15.5 s, not {answer}")


def check_merge_rows(fn):
    """06: fn(rows [n], values [n, dim]) returns (rows [m] rising, values [m, dim]): every row once, with its sum."""
    answer, hint = _try(fn, np.array([7, 2, 7, 4]), np.array([[1.0, 0], [2, 2], [4, 1], [0, 3]]))
    if hint is None and list(answer[0]) != [2, 4, 7]:
        hint = f"rows 7, 2, 7, 4 merge to 2, 4, 7, each once and in rising order; yours are {list(answer[0])}"
    elif hint is None and np.shape(answer[1]) != (3, 2):
        hint = f"three rows with two values each are needed; yours have the shape {np.shape(answer[1])}"
    elif hint is None and not np.allclose(answer[1], [[2, 2], [0, 3], [5, 1]]):
        hint = f"row 7 comes twice, as [1, 0] and [4, 1], so its sum is [5, 1]; yours is {list(answer[1][2])}"
    return _say(hint is None, hint)


def check_interval(fn):
    """06: fn(compute, talk, share) returns how many steps of `compute` s an exchange of `talk` s needs beside it."""
    answer, hint = _try(fn, 0.002, 0.0499, 0.2)
    if hint is None and answer == 125:
        hint = "125 steps compute 0.25 s, so that talking is 0.2 of the computing; it may be 0.2 of all the time"
    elif hint is None and answer != 100:
        hint = f"100 steps of 2 ms compute 200 ms, and 49.9 ms of talking are 0.2 of 249.9 ms; you have {answer}"
    elif hint is None and fn(0.003, 0.05, 0.2) != 67:
        hint = f"66.7 steps are needed of 3 ms each, so 67; you have {fn(0.003, 0.05, 0.2)}"
    elif hint is None and fn(1.0, 0.001, 0.5) != 1:
        hint = f"a rank takes at least 1 step between two exchanges; you have {fn(1.0, 0.001, 0.5)}"
    return _say(hint is None, hint)


def check_server_of_row(fn):
    """09: fn(row, rows, servers) returns the server that has the row, when the first shards take the remainder."""
    answer, hint = _try(fn, 3, 11, 3)
    cases = [(3, 11, 3), (4, 11, 3), (7, 11, 3), (8, 11, 3), (10, 11, 3), (0, 5, 4), (1, 5, 4), (2, 5, 4), (5, 6, 2)]
    due = [0, 1, 1, 2, 2, 0, 0, 1, 1]
    for (row, rows, servers), right in zip(cases, due, strict=True):
        answer = right if hint else fn(row, rows, servers)
        if answer != right:
            sizes = [rows // servers + (server < rows % servers) for server in range(servers)]
            hint = f"{rows} rows make shards of {sizes}, so row {row} is on server {right}; you say {answer}"
    return _say(hint is None, hint)


def check_pulled_and_pushed(fn):
    """09: fn(ids [n], dim) returns the bytes of the rows that a step pulls and of the gradients that it pushes."""
    answer, hint = _try(fn, np.array([7, 2, 7, 4, 7]), 10)
    if hint is None and answer == 400:
        hint = "row 7 comes three times, but is pulled once"
    elif hint is None and answer == 120:
        hint = "that is one way: the rows come, and their gradients go"
    elif hint is None and answer == 60:
        hint = "a float32 has 4 bytes"
    return _say(answer == 240, hint or f"3 different rows of 10 floats, there and back: 240 bytes; you have {answer}")


def check_servers_needed(fn):
    """09: fn(rows, dim, accumulators, server_bytes) returns how many servers hold all of it in 0.8 of their memory."""
    answer, hint = _try(fn, 1000, 16, 1, 50_000)
    if hint is None and answer == 2:
        hint = "an accumulator for each number takes as much memory as the table"
    elif hint is None and answer == 3:
        hint = "128,000 bytes in servers of 50,000: 3 would do if they could be filled to the brim, which they cannot"
    elif hint is None and answer == 4 and fn(1000, 16, 1, 40_000) == 5:
        hint = "128,000 bytes fit exactly into 4 servers of 40,000 (0.8 of each); you take 5"
    elif hint is None and answer == 4 and fn(1000, 16, 2, 40_000) != 6:
        hint = f"with two accumulators 192,000 bytes need 6 servers of 40,000; you have {fn(1000, 16, 2, 40_000)}"
    return _say(answer == 4 and hint is None, hint or f"128,000 bytes in servers of 50,000 need 4; you have {answer}")


def check_owner(fn):
    """07: fn(row, rows, servers) returns (server, row within its shard) of a table cut as evenly as possible."""
    for row, rows, servers, due in ((3, 10, 2, (0, 3)), (7, 10, 2, (1, 2)), (4, 11, 3, (1, 0)), (10, 11, 3, (2, 2))):
        answer, hint = _try(fn, row, rows, servers)
        if hint is None and tuple(answer) != due:
            lengths = [rows // servers + (server < rows % servers) for server in range(servers)]
            hint = f"{rows} rows on {servers} servers are shards of {lengths}: row {row} is {due}, not {tuple(answer)}"
        if hint:
            break
    return _say(hint is None, hint)


def check_staleness(fn):
    """07: fn(log) returns for each push the number of pushes of others since that worker's last pull."""
    log = list(zip(("pull", "pull", "push", "pull", "push", "push"), "ABAABA", strict=True))
    answer, hint = _try(fn, log)
    found = [] if answer is None else list(answer)
    if hint is None and len(found) != 3:
        hint = f"there are 3 pushes in the log of the check, and you have {len(found)} numbers"
    elif hint is None and found[0] != 0:
        hint = f"nobody pushed between the first pull of A and its push, so that is 0; you have {found[0]}"
    return _say(found == [0, 1, 1], hint or f"A, B pull, A pushes, A pulls, B pushes, A pushes: 0, 1, 1, not {found}")


def check_combined(fn):
    """07: fn(row [dim], copies [workers, dim]) returns the row after every worker has pushed what it changed."""
    answer, hint = _try(fn, np.array([1.0, 2.0]), np.array([[0.5, 2.0], [0.75, 3.0]]))
    right = answer is not None and np.shape(answer) == (2,) and np.allclose(answer, [0.25, 3.0])
    if hint is None and np.allclose(answer, [0.625, 2.5]):
        hint = "that is the average of the copies; the servers add up the changes"
    elif hint is None and np.allclose(answer, [0.75, 3.0]):
        hint = "that is the last copy; a push adds a change, it does not overwrite the row"
    return _say(right, hint or f"[1, 2] and the copies [0.5, 2] and [0.75, 3] give [0.25, 3]; you have {answer}")


def check_kept(fn):
    """08: fn(slowdowns), one for each worker, returns the shares that (synchronous, asynchronous) training keeps."""
    answer, hint = _try(fn, [1, 5])
    if hint is None and np.shape(answer) != (2,):
        hint = f"two numbers are wanted, synchronous and asynchronous; you have {answer}"
    elif hint is None and not np.isclose(answer[0], 0.2):
        hint = f"synchronous training goes at the pace of the slowest: 0.2 for slowdowns of 1 and 5, not {answer[0]}"
    elif hint is None and not np.isclose(answer[1], 0.6):
        hint = f"asynchronously a whole worker and a fifth of one do (1 + 0.2) / 2 of the work of two, not {answer[1]}"
    elif hint is None and not np.allclose(fn([2, 1, 4, 4]), [0.25, 0.5]):
        hint = f"slowdowns of 2, 1, 4 and 4 leave 0.25 and 0.5; you have {fn([2, 1, 4, 4])}"
    return _say(hint is None, hint)


def check_late_descent(fn):
    """08: fn(rate, delay, steps) returns x after descending on x ** 2 / 2 from 1, with slopes `delay` steps old."""
    answer, hint = _try(fn, 0.5, 0, 3)
    if hint is None and not np.isclose(answer, 0.125):
        hint = f"without delay a rate of 0.5 halves x in each step: 0.125 after 3 steps; you have {answer}"
    elif hint is None and not np.isclose(fn(0.5, 1, 3), -0.25):
        hint = f"with rate 0.5 and delay 1, x goes 1, 0.5, 0, -0.25; after 3 steps you have {fn(0.5, 1, 3)}"
    elif hint is None and not np.isclose(fn(0.1, 5, 6), 0.4):
        hint = f"the first 6 slopes with delay 5 are all 1, so rate 0.1 leads to 0.4; you have {fn(0.1, 5, 6)}"
    return _say(hint is None, hint)


def check_save_interval(fn):
    """08: fn(write, between) returns the seconds between checkpoints that cost least: Young's formula."""
    answer, hint = _try(fn, 2.0, 3600.0)
    if hint is None and not answer > 0:
        hint = f"a checkpoint of 2 s and a failure every 3600 s want a time above 0, not {answer}"
    elif hint is None and not np.isclose(answer, 120):
        cost = 2 / answer + answer / 7200
        hint = f"saving every {answer:.0f} s costs a share of {cost:.4f}; every 120 s it costs {1 / 60:.4f}"
    return _say(hint is None, hint)
