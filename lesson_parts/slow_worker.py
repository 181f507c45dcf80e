"""The harness of lesson 17: worker 1 of two is slowed every other turn, and what was done meanwhile is counted.

A log is an array with a row for each batch: when it ended, who did it, its loss, its staleness. A turn is (name, begin,
end), its name "healthy" or "slow".
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from helpers.plots import COLORS, SERIAL
from helpers.text import pair_batches


def draw_batches(corpus, vocab, batches, size, noise, rng):
    """Draw all batches of a training beforehand.

    Parameters
    ----------
    corpus : Corpus
    vocab : Vocab
    batches, size, noise : int
        How many batches, pairs of each, and noise words that all pairs of a batch share.
    rng : numpy.random.Generator

    Returns
    -------
    centers : int32 array
        [batches, size].
    others : int32 array
        [batches, size + noise]: the contexts, then the noise words.
    """
    centers, others = [], []
    ids, keep = vocab.encode(corpus.words), vocab.keep_probability(1e-4)
    drawn = pair_batches(ids, size, 5, rng, keep)
    for _ in range(batches):
        batch, contexts = next(drawn)
        words = rng.choice(len(vocab), noise, p=vocab.noise())
        centers.append(batch)
        others.append(np.concatenate([contexts, words.astype(np.int32)]))
    return np.stack(centers), np.stack(others)


def own_numbers(cluster):
    """An iterator that gives each worker of a PSCluster its own number, in a function that is scheduled."""

    def own_number():
        get = tf.distribute.coordinator.experimental_get_current_worker_index
        return tf.data.Dataset.from_tensors(get()).repeat()

    return iter(cluster.coordinator.create_per_worker_dataset(own_number))


# ---- The brake, and what is left under it


def with_brakes(train, brake, seconds=0.5):
    """Train, and meanwhile apply a brake every other turn.

    Parameters
    ----------
    train : callable
        Without arguments.
    brake : callable
        brake() is a context manager; inside it worker 1 is slow.
    seconds : float
        Of a turn.

    Returns
    -------
    found
        What `train` returned.
    turns : list of (str, float, float)
        "healthy" or "slow", begin and end.
    """
    over, turns = threading.Event(), []

    def brake_in_turn():
        while not over.is_set():
            for name, applied in (("healthy", nullcontext), ("slow", brake)):
                with applied():
                    begin = time.time()
                    over.wait(seconds)
                    turns.append((name, begin, time.time()))

    with ThreadPoolExecutor(1) as pool:
        braking = pool.submit(brake_in_turn)
        try:
            found = train()
        finally:
            over.set()
    braking.result()
    return found, turns


def throughputs(log, turns, pairs=1):
    """Pairs/s in each turn, {"healthy": [n], "slow": [n]}; each row of the log is `pairs`, by default one batch.

    A turn in which training began or ended counts only if there is no whole one.
    """
    when, whole, parts = log[:, 0], {}, {}
    for name, begin, end in turns:
        a, b = max(begin, when.min()), min(end, when.max())
        if b - a > 0.1:  # seconds of it in which somebody trained
            found = whole if (a, b) == (begin, end) else parts
            done = np.sum((a < when) & (when <= b))
            found.setdefault(name, []).append(done * pairs / (b - a))
    return {name: np.array(each) for name, each in (parts | whole).items()}


def shares_left(log, turns):
    """The throughput of each slow turn, divided by the median of the healthy turns."""
    found = throughputs(log, turns)
    return found["slow"] / np.median(found["healthy"])


def during(log, turns, name):
    """The rows of a log that ended in turns of this name."""
    when = log[:, 0]
    inside = [(begin < when) & (when < end) for turn, begin, end in turns if turn == name]
    return log[np.any(inside, axis=0)]


def last_loss(log, batches=40):
    """The mean loss of the batches that ended last."""
    return log[log[:, 0].argsort(), 2][-batches:].mean()


def summary(log, turns, pairs, batches):
    """What a way of training costs, in one line of a table.

    Parameters
    ----------
    log : array
        A staleness below 0 marks a gradient that was dropped: it does not count as throughput.
    turns : list of (str, float, float)
        For a run without a straggler only "healthy" ones.
    pairs : int
        Of a batch.
    batches : int
        The loss is the mean over the last fifth of the first so many.

    Returns
    -------
    dict
        "healthy" (pairs/s), "left" (str, the median share in slow turns, "" without a straggler), "stalest" and "loss".
    """
    useful = log[log[:, 3] >= 0]
    found = throughputs(useful, turns, pairs)
    first = log[log[:, 0].argsort()][:batches]
    return {
        "healthy": np.median(found["healthy"]),
        "left": f"{np.median(shares_left(useful, turns)):.0%}" if "slow" in found else "",
        "stalest": log[:, 3].max(),
        "loss": last_loss(first, batches // 5),
    }


def draw_rates(rates, ends, untrained):
    """Draw the loss at the end against the learning rate, a line for each way; the serial one is grey.

    Parameters
    ----------
    rates : list of float
    ends : dict of str to list of float
        {way: its loss at each rate}; NaN and what is above 9 is drawn at 9.
    untrained : float
        The loss before the training.
    """
    colors = iter(COLORS)
    for way, losses in ends.items():
        color = SERIAL if way == "serial" else next(colors)
        shown = np.nan_to_num(np.minimum(losses, 9), nan=9)
        plt.plot(rates, shown, "o-", color=color, label=way)
    plt.axhline(untrained, color="k", linestyle=":", label="untrained")
    plt.xscale("log")
    plt.xticks(rates, [f"{rate:.0f}" for rate in rates])
    plt.minorticks_off()
    plt.ylim(2.5, 9.3)
    plt.xlabel("learning rate")
    plt.ylabel("loss after 200 batches\n(cut off at 9)")
    plt.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2, fontsize=9)
