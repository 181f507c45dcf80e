"""The harness of lesson 17: worker 1 of two is slowed every other turn, and what was done meanwhile is counted.

(Lesson 20 draws its batches and numbers its workers in the same way.)

A log is an array with a row for each batch: when it ended, who did it, its loss, its staleness, and with servers when
its pull began. A turn is (name, begin, end), its name "healthy" or "slow", or "pause" for a time within a slow turn in
which worker 1 stood still.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from helpers.plots import COLORS, SERIAL, median_and_range, table
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


class Workers:
    """The workers of a PSCluster, which take batches that this process hands out.

    Parameters
    ----------
    cluster : PSCluster
    centers, others : int32 array
        All batches, as `draw_batches` returns them.
    """

    def __init__(self, cluster, centers, others):
        self.coordinator = cluster.coordinator
        self.batches = centers, others
        self.numbers = own_numbers(cluster)

    def step(self, model, pull_and_push):
        """Make of pull_and_push(model, ids, lr, me) a function that can be scheduled; it returns a row of the log."""

        @tf.function
        def step(x, y, lr, who):
            me = tf.cast(next(who), tf.float64)
            return pull_and_push(model, (x, y), lr, me)

        return step

    def submit(self, step, batch, lr):
        """Queue the batch with this number for any free worker; returns the promise of its row of the log.

        step: what `step` returned, or {batch: such a step of its own, "others": that of all others}.
        """
        if isinstance(step, dict):
            step = step.get(batch, step["others"])
        x, y = (tf.constant(side[batch]) for side in self.batches)
        return self.coordinator.schedule(step, (x, y, tf.constant(lr), self.numbers))

    def collect(self, promises):
        """Wait until all is done; returns the log, with the row of each promise."""
        self.coordinator.join()
        return np.stack([promise.fetch() for promise in promises])


def computes_on(seconds, after):
    """Inside a tf.function, keep the worker computing for so many seconds; returns what is there when they are over.

    after: tensors, from which on the time counts.
    """
    with tf.control_dependencies(after):
        until = tf.timestamp() + seconds
    return tf.nest.flatten(tf.while_loop(lambda n: tf.timestamp() < until, lambda n: [n + 1], [0]))


# ---- The brake, and what is left under it


def with_brakes(train, slow, seconds=0.5):
    """Train, and meanwhile apply a brake every other turn.

    Parameters
    ----------
    train : callable
        Without arguments.
    slow : callable
        slow() is a context manager; inside it worker 1 is slow. It may yield a list, of the pauses after its end.
    seconds : float
        Of a turn.

    Returns
    -------
    found
        What `train` returned.
    turns : list of (str, float, float)
        "healthy" or "slow", begin and end; after a slow one its pauses.
    """
    over, turns = threading.Event(), []
    cycle = [("healthy", nullcontext), ("slow", slow)]

    def brake_in_turn():
        while not over.is_set():
            for name, applied in cycle:
                with applied() as pauses:
                    begin = time.time()
                    over.wait(seconds)
                    turns.append((name, begin, time.time()))
                turns.extend(("pause", *pause) for pause in pauses or ())

    with ThreadPoolExecutor(1) as pool:
        braking = pool.submit(brake_in_turn)
        try:
            found = train()
        finally:
            over.set()
    braking.result()
    return found, turns


def healthy_turns(log, seconds=0.5):
    """Cut a run without a brake into turns of so many seconds, [("healthy", begin, end)], and drop the rest."""
    begins = np.arange(log[:, 0].min(), log[:, 0].max() - seconds, seconds)
    return [("healthy", begin, begin + seconds) for begin in begins]


def trained_turns(log, turns):
    """The part of each turn that lies between the first and the last batch of the log: (name, begin, end)."""
    first, last = log[:, 0].min(), log[:, 0].max()
    parts = [(name, max(begin, first), min(end, last)) for name, begin, end in turns]
    return [(name, begin, end) for name, begin, end in parts if begin < end]


def counted_turns(log, turns, name):
    """The turns of this name that lie amid the training; if there is none, those parts of them that do."""
    trained = [turn for turn in trained_turns(log, turns) if turn[0] == name]
    whole = [turn for turn in trained if turn in turns]
    return whole or [(name, begin, end) for name, begin, end in trained if end - begin > 0.1]


def throughputs(log, turns, pairs=1):
    """Pairs/s in each turn, {"healthy": [n], "slow": [n]}; each row of the log is `pairs`, by default one batch.

    A turn in which training began or ended counts only if there is no whole one.
    """
    when, found = log[:, 0], {}
    for name in ("healthy", "slow"):
        spans = [(begin, end) for _, begin, end in counted_turns(log, turns, name)]
        done = [np.sum((begin < when) & (when <= end)) * pairs / (end - begin) for begin, end in spans]
        if done:
            found[name] = np.array(done)
    return found


def shares_left(log, turns):
    """The throughput of each slow turn, divided by the median of the healthy turns."""
    found = throughputs(log, turns)
    return found["slow"] / np.median(found["healthy"])


def during(log, turns, name):
    """The rows of a log that ended in turns of this name."""
    when = log[:, 0]
    inside = [(begin < when) & (when < end) for turn, begin, end in turns if turn == name]
    return log[np.any(inside, axis=0)]


def batches_of_each(log, turns, name):
    """How many batches worker 0 and worker 1 ended in turns of this name: [2]."""
    return np.bincount(during(log, turns, name)[:, 1].astype(int), minlength=2)


def pace_in_pauses(of_0, turns, begin, end):
    """Batches/s of worker 0 in the pauses of the slow turn from begin to end; NaN if it has none. of_0: its log."""
    stood = [turn for turn in trained_turns(of_0, turns) if turn[0] == "pause" and begin <= turn[1] < end]
    seconds = sum(till - since for _, since, till in stood)
    return len(during(of_0, stood, "pause")) / seconds if seconds else np.nan


def kept_in_pauses(log, turns):
    """The share of its healthy pace that worker 0 keeps while worker 1 stands still, in each slow turn."""
    of_0 = log[log[:, 1] == 0]
    paces = [pace_in_pauses(of_0, turns, begin, end) for _, begin, end in counted_turns(of_0, turns, "slow")]
    shares = np.array(paces) / np.median(throughputs(of_0, turns)["healthy"])
    return shares[~np.isnan(shares)]


def pushes_between(log):
    """For each row of a log with times of pulls: how many batches of the others ended between its pull and its end."""
    when, who, pulled = log[:, 0], log[:, 1], log[:, 4]
    inside = (pulled[:, None] < when) & (when <= when[:, None])
    return np.sum(inside & (who[:, None] != who), axis=1)


def at_each_pause(log, turns):
    """What happened at each pause amid the training.

    Parameters
    ----------
    log : array
        With times of pulls.
    turns : list of (str, float, float)

    Returns
    -------
    int array
        [3, pauses]: the batches that worker 0 ended in the pause; whether worker 1 had begun its next pull before it (1
        or 0); the staleness of worker 1's next push.
    """
    of_0, of_1 = (log[log[:, 1] == who] for who in (0, 1))
    found = []
    for turn in turns:
        what, begin, end = turn
        amid = what == "pause" and log[:, 0].min() < begin and end < of_0[:, 0].max()
        after = of_1[of_1[:, 0] > end]
        if amid and len(after):
            following = after[after[:, 0].argmin()]
            found.append([len(during(of_0, [turn], what)), following[4] < begin, following[3]])
    return np.array(found, int).reshape(-1, 3).T


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
        Of a run without a brake what `healthy_turns` returns; if that is none, all of it is one healthy turn.
    pairs : int
        Of a batch.
    batches : int
        The loss is the mean over the last fifth of the first so many.

    Returns
    -------
    dict
        "healthy" and "slow" (pairs/s of each such turn, if there are any), "stalest" and "loss".
    """
    turns = turns or [("healthy", log[:, 0].min(), log[:, 0].max())]
    found = throughputs(log[log[:, 3] >= 0], turns, pairs)
    first = log[log[:, 0].argsort()][:batches]
    return found | {"stalest": log[:, 3].max(), "loss": last_loss(first, batches // 5)}


def costs_table(costs, by_exercise):
    """A table with a line for each way; `draw_costs` draws its paces.

    Parameters
    ----------
    costs : dict of str to dict
        {way: its `summary`}.
    by_exercise : dict of str to str
        {way: the share that exercise 1 says is left}.
    """
    rows = []
    for way, of in costs.items():
        left = f"{np.median(of['slow']) / np.median(of['healthy']):.0%}" if "slow" in of else ""
        rows.append([way, left, by_exercise[way], f"{of['stalest']:.0f}", f"{of['loss']:.3f}"])
    return table(["", "left with the straggler", "by exercise 1", "highest staleness", "final loss"], rows)


def pauses_table(log, turns):
    """A table of the pauses of worker 1: those between its pull and its push, and the others."""
    pushes, between, late = at_each_pause(log, turns)
    rows = []
    for where, which in (("between pull and push", between == 1), ("elsewhere", between == 0)):
        numbers = [median_and_range(each[which], 0) if which.any() else "" for each in (pushes, late)]
        rows.append([where, which.sum(), *numbers])
    return table(["the pause falls", "pauses", "pushes of worker 0 in it", "staleness of worker 1's next push"], rows)


def rates_table(rates, ends, before):
    """A table of the loss at the end, a line for each way; what ends more than a quarter above `before` fails.

    Parameters
    ----------
    rates : list of float
    ends : dict of str to list of float
        {way: its loss at each rate, or at the first of them}; NaN fails, too.
    before : float
        The loss without this training.
    """
    rows = []
    for way, losses in ends.items():
        said = [f"{loss:.2f}" if loss < 1.25 * before else "fails" for loss in losses]
        rows.append([way, *said, *[""] * (len(rates) - len(losses))])
    return table(["loss at a rate of", *(f"{rate:.0f}" for rate in rates)], rows)


# ---- Pictures


def typical_turn(log, turns):
    """Begin and end of the slow turn in whose pauses worker 0 has its median pace."""
    first, last = log[:, 0].min(), log[:, 0].max()
    slow = [(begin, end) for name, begin, end in turns if name == "slow"]
    amid = [(begin, end) for begin, end in slow if first < begin - 0.3 and end + 0.3 < last] or slow
    paces = [pace_in_pauses(log[log[:, 1] == 0], turns, *turn) for turn in amid]
    paused = np.flatnonzero(~np.isnan(paces))
    ordered = paused[np.argsort(np.array(paces)[paused])]
    return amid[ordered[len(ordered) // 2]] if len(ordered) else amid[0]


def draw_second(runs, title):
    """Draw a second of each way, a mark where a batch ends: a typical slow turn, its pauses in grey.

    Hatched is the time between the turn before and this one, in which the brake starts.

    Parameters
    ----------
    runs : dict of str to (array, list)
        {way: (its log, its turns)}.
    title : str
    """
    _, axes = plt.subplots(len(runs), sharex=True, figsize=(4.8, 1 + 0.9 * len(runs)), layout="constrained")
    for ax, (way, (log, turns)) in zip(axes, runs.items()):
        begin, end = typical_turn(log, turns)
        around = (1 - (end - begin)) / 2
        for name, stood, went_on in turns:
            if name == "pause" and begin - 0.1 < stood < end:
                ax.axvspan(1e3 * (stood - begin), 1e3 * (went_on - begin), color=SERIAL, alpha=0.25, linewidth=0)
        before = [ended - begin for name, _, ended in turns if name == "healthy" and ended <= begin]
        if before:
            hatched = {"facecolor": "none", "edgecolor": SERIAL, "hatch": "////", "alpha": 0.4, "linewidth": 0}
            ax.axvspan(1e3 * max(before), 0, **hatched)
        for who in (0, 1):
            ended = log[log[:, 1] == who, 0] - begin
            ax.eventplot(1e3 * ended, lineoffsets=who, linelengths=0.8, linewidths=1.3, colors=COLORS[who])
        ax.set(xlim=(-1e3 * around, 1e3 * (end - begin + around)), yticks=[0, 1], ylim=(1.6, -0.6))
        kept = np.median(kept_in_pauses(log, turns))
        ax.set_title(f"{way}: in pauses worker 0 does {kept:.0%} of its pace (median)", loc="left", fontsize=10)
        ax.grid(False)
    axes[0].get_figure().suptitle(title)
    axes[-1].set_xlabel(
        "ms; a mark is the end of a batch of worker 0 or 1;\ngrey: worker 1 is paused; hatched: the brake starts"
    )
    plt.show()


def draw_long(logs, batch, title):
    """Draw, for each way, the batch that stands still: grey from its pull to its push, a mark where a batch ends.

    Parameters
    ----------
    logs : dict of str to array
        {way: its log, with times of pulls, a row for each batch in the order in which they were handed out}.
    batch : int
        The row of the one that stands still.
    title : str
    """
    fig, axes = plt.subplots(len(logs), sharex=True, figsize=(4.8, 1 + 0.9 * len(logs)), layout="constrained")
    for ax, (way, log) in zip(axes, logs.items()):
        ended, who, _, late, pulled = log[batch]
        ax.axvspan(0, ended - pulled, color=SERIAL, alpha=0.25, linewidth=0)
        for row, marks in enumerate((log[log[:, 1] != who, 0], log[log[:, 1] == who, 0])):
            ax.eventplot(marks - pulled, lineoffsets=row, linelengths=0.8, linewidths=1.3, colors=COLORS[row])
        ax.set(xlim=(-0.3, ended - pulled + 0.3), yticks=[0, 1], yticklabels=["other", "stands"], ylim=(1.6, -0.6))
        ax.set_title(f"{way}: its gradient misses {late:.0f} pushes", loc="left", fontsize=10)
        ax.grid(False)
    fig.suptitle(title)
    axes[-1].set_xlabel("seconds; a mark is the end of a batch;\ngrey: from the pull to the push of the long one")
    plt.show()


def draw_costs(costs, title):
    """Draw the pace of each way: a dot at the median of its turns, a line from the slowest to the fastest.

    Parameters
    ----------
    costs : dict of str to dict
        {way: its `summary`}.
    title : str
    """
    fig, ax = plt.subplots(figsize=(4.8, 1.3 + 0.5 * len(costs)), layout="constrained")
    labels = {"healthy": "nobody slow", "slow": "with the straggler"}
    for row, of in enumerate(costs.values()):
        for name, color, place in (("healthy", COLORS[0], row - 0.16), ("slow", COLORS[1], row + 0.22)):
            if name in of:
                pairs = of[name] / 1e3
                median = np.median(pairs)
                ax.plot([min(pairs), max(pairs)], [place] * 2, color=color, lw=2)
                ax.plot(median, place, "o", color=color, ms=6, label=labels.pop(name, None))
                ax.annotate(f"{median:.0f}", (median, place), (0, 4), textcoords="offset points", ha="center")
    ax.set(yticks=range(len(costs)), yticklabels=[*costs], xlim=(0, None), ylim=(len(costs) - 0.4, -0.8))
    ax.set_xlabel("thousand pairs/s, median and range of the turns")
    fig.legend(loc="outside lower center", ncols=2)
    fig.suptitle(title)
    plt.show()
