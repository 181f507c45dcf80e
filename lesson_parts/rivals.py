"""The rivals of lesson 13's blocks: gensim, and pairs drawn from blocks as word2vec draws them, of the same text."""

import time

import numpy as np
from gensim.models import Word2Vec
from numba import njit

MULTIPLIER = np.uint64(25_214_903_917)  # of word2vec.c's random numbers
BITS = np.uint64(16)


@njit(nogil=True)
def draw_below(state, n):
    """Draw a number below n.

    Returns
    -------
    state : np.uint64
        For the next draw.
    number : int
    """
    state = state * MULTIPLIER + np.uint64(11)
    return state, np.int64(state >> BITS) % n


@njit(nogil=True)
def draw_pairs(words, window, random, negatives):
    """Draw the pairs of blocks, center after center, with random words for each.

    A center looks 1 to `window` words far, each as likely, to both sides. The random words are drawn from those of all
    blocks. What is drawn is the same in each call.

    Parameters
    ----------
    words : int32 array [n, window + tokens + window + random]
        From `cut_blocks`, in one row: no steps.
    window, random : int
    negatives : int
        Random words of a pair.

    Returns
    -------
    int32 array [pairs, 2 + negatives]
        A center, a near word, random words. No pair has id 0 as center or near word.
    """
    around = words.shape[1] - random
    noise = words[:, around:].copy().ravel()
    pairs = np.empty((len(words) * (around - 2 * window) * 2 * window, 2 + negatives), np.int32)
    state = np.uint64(1)
    n = 0
    for block in range(len(words)):
        for i in range(window, around - window):
            state, shorter = draw_below(state, window)
            reach = 1 + shorter
            for j in range(i - reach, i + reach + 1):
                if j == i or words[block, i] == 0 or words[block, j] == 0:
                    continue
                pairs[n, 0] = words[block, i]
                pairs[n, 1] = words[block, j]
                for k in range(2, 2 + negatives):
                    state, place = draw_below(state, len(noise))
                    pairs[n, k] = noise[place]
                n += 1
    return pairs[:n]


def on_drawn_pairs(loop, negatives, drawing):
    """Make a loop over blocks of a loop over pairs: it draws the pairs of its blocks, and trains these.

    Parameters
    ----------
    loop : function
        loop(center_table, context_table, pairs, lr, largest).
    negatives : int
        Random words of a pair.
    drawing : list of float
        Each call adds to it the seconds that `draw_pairs` took.

    Returns
    -------
    function
        It is called as `train_words` is; the bounds of the rates and the weights have no effect.
    """

    def train_drawn(centers, contexts, center_rates, context_rates, words, weights, window, random, lr, largest):
        begin = time.perf_counter()
        pairs = draw_pairs(words, window, random, negatives)
        drawing.append(time.perf_counter() - begin)
        loop(centers, contexts, pairs, lr, largest)

    return train_drawn


def gensim_seconds(words, every, **settings):
    """Time gensim's skip-gram; counting the words and making the tables are not timed.

    Parameters
    ----------
    words : list of str
    every : int
        It trains every so many-th line of 1,000 words, once.
    **settings
        Of `gensim.models.Word2Vec`.

    Returns
    -------
    float
        Seconds for all words: those that it took, times all lines over the lines trained.
    """
    lines = [words[i : i + 1_000] for i in range(0, len(words), 1_000)]
    model = Word2Vec(sg=1, min_count=1, **settings)
    model.build_vocab(lines)
    trained = lines[::every]
    begin = time.perf_counter()
    model.train(trained, total_examples=len(trained), epochs=1)
    return (time.perf_counter() - begin) * len(lines) / len(trained)
