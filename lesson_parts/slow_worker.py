"""The harness of lesson 17: worker 1 of two is slowed every other turn, and what was done meanwhile is counted.

(Lesson 20 draws its batches and numbers its workers in the same way.)

A log is an array with a row for each batch: when it ended, who did it, its loss, its staleness. A turn is (name, begin,
end), its name "healthy" or "slow", or "pause" for a time within a slow turn in which worker 1 stood still. In a turn
named "taken" worker 1 is slow, too, but something computes while it stands; its pauses are "taken pause".
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
        """Queue the batch with this number for any free worker; returns the promise of its row of the log."""
        x, y = (tf.constant(side[batch]) for side in self.batches)
        return self.coordinator.schedule(step, (x, y, tf.constant(lr), self.numbers))

    def collect(self, promises):
        """Wait until all is done; returns the log, with the row of each promise."""
        self.coordinator.join()
        return np.stack([promise.fetch() for promise in promises])


# ---- The brake, and what is left under it


PAUSES = {"slow": "pause", "taken": "taken pause"}


def with_brakes(train, slow, taken=None, seconds=0.5):
    """Train, and meanwhile apply a brake every other turn.

    Parameters
    ----------
    train : callable
        Without arguments.
    slow : callable
        slow() is a context manager; inside it worker 1 is slow. It may yield a list, of the pauses after its end.
    taken : callable, optional
        Another one, which takes turns with the first.
    seconds : float
        Of a turn.

    Returns
    -------
    found
        What `train` returned.
    turns : list of (str, float, float)
        "healthy", "slow" or "taken", begin and end; after a slow one its pauses.
    """
    over, turns = threading.Event(), []
    cycle = [("healthy", nullcontext), ("slow", slow)]
    if taken:
        cycle += [("healthy", nullcontext), ("taken", taken)]

    def brake_in_turn():
        while not over.is_set():
            for name, applied in cycle:
                with applied() as pauses:
                    begin = time.time()
                    over.wait(seconds)
                    turns.append((name, begin, time.time()))
                turns.extend((PAUSES[name], *pause) for pause in pauses or ())

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
    for name in ("healthy", "slow", "taken"):
        spans = [(begin, end) for _, begin, end in counted_turns(log, turns, name)]
        done = [np.sum((begin < when) & (when <= end)) * pairs / (end - begin) for begin, end in spans]
        if done:
            found[name] = np.array(done)
    return found


def shares_left(log, turns, name="slow"):
    """The throughput of each slow (or "taken") turn, divided by the median of the healthy turns."""
    found = throughputs(log, turns)
    return found[name] / np.median(found["healthy"])


def during(log, turns, name):
    """The rows of a log that ended in turns of this name."""
    when = log[:, 0]
    inside = [(begin < when) & (when < end) for turn, begin, end in turns if turn == name]
    return log[np.any(inside, axis=0)]


def batches_of_each(log, turns, name):
    """How many batches worker 0 and worker 1 ended in turns of this name: [2]."""
    return np.bincount(during(log, turns, name)[:, 1].astype(int), minlength=2)


def kept_in_pauses(log, turns, name="slow"):
    """The share of its healthy pace that worker 0 keeps while worker 1 stands still, in each slow (or "taken") turn."""
    of_0 = log[log[:, 1] == 0]
    healthy = np.median(throughputs(of_0, turns)["healthy"])
    stood = trained_turns(of_0, [turn for turn in turns if turn[0] == PAUSES[name]])
    shares = []
    for _, begin, end in counted_turns(of_0, turns, name):
        pauses = [pause for pause in stood if begin <= pause[1] < end]
        if pauses:
            seconds = sum(till - since for _, since, till in pauses)
            shares.append(len(during(of_0, pauses, PAUSES[name])) / seconds / healthy)
    return np.array(shares)


def at_each_pause(log, turns, name="slow"):
    """What happened at each pause amid the training, in slow (or "taken") turns.

    Returns
    -------
    int array
        [2, pauses]: the batches that worker 0 ended in the pause, and the staleness of worker 1's next one.
    """
    of_0, of_1 = (log[log[:, 1] == who] for who in (0, 1))
    found = []
    for turn in turns:
        what, begin, end = turn
        amid = what == PAUSES[name] and log[:, 0].min() < begin and end < of_0[:, 0].max()
        after = of_1[of_1[:, 0] > end]
        if amid and len(after):
            found.append([len(during(of_0, [turn], what)), after[after[:, 0].argmin(), 3]])
    return np.array(found, int).reshape(-1, 2).T


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
    """A table with a line for each way, its paces in thousand pairs/s.

    Parameters
    ----------
    costs : dict of str to dict
        {way: its `summary`}.
    by_exercise : dict of str to str
        {way: the share that exercise 1 says is left}.
    """

    def pace(pairs):
        return median_and_range(pairs / 1e3, 0) if len(pairs) > 1 else f"{pairs[0] / 1e3:.0f}"

    rows = []
    for way, of in costs.items():
        healthy, slow = (pace(of[turns]) if turns in of else "" for turns in ("healthy", "slow"))
        left = ""
        if slow:
            left = f"{np.median(of['slow']) / np.median(of['healthy']):.0%}"
        rows.append([way, healthy, slow, left, by_exercise[way], f"{of['stalest']:.0f}", f"{of['loss']:.3f}"])
    columns = ["healthy", "with the straggler", "left", "by exercise 1"]
    return table(["", *columns, "highest staleness", "final loss"], rows)


def servers_table(log, turns):
    """A table with a line for each kind of turn: what is done of the healthy pace, and how many gradients are late.

    It says how many turns a line is from. "In the pauses" is what worker 0 does of its own healthy pace while worker 1
    stands still.
    """
    kinds = {"healthy": "is healthy", "slow": "pauses, its core is free", "taken": "pauses, its core is taken"}
    rows = []
    for name, worker_1 in kinds.items():
        shares = 100 * shares_left(log, turns, name)
        in_pauses = ""
        if name in PAUSES:
            in_pauses = median_and_range(100 * kept_in_pauses(log, turns, name), 0)
        late = np.mean(during(log, turns, name)[:, 3] > 0)
        rows.append([worker_1, len(shares), in_pauses, median_and_range(shares, 0), f"{late:.0%}"])
    columns = ["worker 0 in the pauses, % of its healthy pace", "both, % of their healthy pace", "late gradients"]
    return table(["worker 1", "turns", *columns], rows)


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


def late_table(logs, rate):
    """A table with a line for each way: its loss at the end beside that of serial training, and how late it was.

    Parameters
    ----------
    logs : dict of str to list of array
        {way: its log for each order of the batches}, "serial" among them.
    rate : float
        The learning rate.
    """
    serial = np.array([last_loss(log) for log in logs["serial"]])
    rows = []
    for way, of_orders in logs.items():
        losses = np.array([last_loss(log) for log in of_orders])
        more = "" if way == "serial" else median_and_range(losses - serial)
        late = np.concatenate(of_orders)[:, 3]
        rows.append([way, median_and_range(losses), more, f"{np.mean(late > 0):.0%}", f"{late.max():.0f}"])
    columns = ["loss", "more than serial", "late gradients", "highest staleness"]
    return table([f"at a rate of {rate:.0f}", *columns], rows)


# ---- Pictures


def draw_pauses(core_free, core_taken):
    """Draw the pauses: a bar for what worker 0 pushed in each, a dot for the staleness of worker 1's next gradient.

    A triangle marks a pause in which worker 0, too, stood still: at most one push.

    Parameters
    ----------
    core_free, core_taken : int array
        [2, pauses], as `at_each_pause` returns them.
    """
    pushes, late = np.hstack([core_free, core_taken])
    number, first_taken = np.arange(1, len(late) + 1), core_free.shape[1] + 0.5
    shades = ["lightgrey"] * core_free.shape[1] + ["darkgrey"] * core_taken.shape[1]
    plt.bar(number, pushes, color=shades, label="pushes of worker 0 in it")
    plt.plot(number, late, "o", color=COLORS[1], label="staleness of worker 1's next push")
    still = pushes <= 1
    if still.any():
        raised = pushes[still] + 0.08 * pushes.max()
        plt.plot(number[still], raised, "kv", ms=5, label="worker 0 stands still, too")
    top = 1.9 * max(pushes.max(), late.max(), 1)
    plt.axvline(first_taken, ymax=0.68, color="k", linestyle=":")
    plt.text(first_taken - 0.2, 0.62 * top, "core free", ha="right", va="center")
    plt.text(first_taken + 0.2, 0.62 * top, "core taken", va="center")
    plt.xticks(number[::4])
    plt.xlabel("pause; very late: a staleness of 5 or more")
    plt.ylabel("pushes")
    plt.legend(loc="upper right")
    plt.ylim(top=top)


def typical_turn(log, turns):
    """Begin and end of the slow turn with the median number of batches, if possible of one amid the training."""
    when = np.sort(log[:, 0])
    slow = [(begin, end) for name, begin, end in turns if name == "slow"]
    amid = [(begin, end) for begin, end in slow if when[0] < begin - 0.3 and end + 0.3 < when[-1]] or slow
    done = [np.sum((begin < when) & (when < end)) for begin, end in amid]
    return amid[np.argsort(done)[len(done) // 2]]


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


def draw_rates(rates, ends, before):
    """Draw the loss at the end against the learning rate, a line for each way; the serial one is grey, broad and below.

    What ends above the dashed line, a quarter above `before`, fails.

    Parameters
    ----------
    rates : list of float
    ends : dict of str to list of float
        {way: its loss at each rate, or at the first of them}; a cross above stands for NaN and for what does not fit.
    before : float
        The loss without this training.
    """
    colors = dict(zip([way for way in ends if way != "serial"], COLORS)) | {"serial": SERIAL}
    top = 3 * before
    for way, losses in ends.items():
        color, width = colors[way], 7 if way == "serial" else 1.5
        fits = np.array(losses) < top  # not NaN
        line = plt.plot(rates[: len(losses)], np.where(fits, losses, np.nan), "o-", color=color, lw=width, ms=width + 3)
        line[0].set_alpha(0.4 if way == "serial" else 1)
        if fits.any():
            last = np.flatnonzero(fits)[-1]
            beside = (9, -6 if way == "serial" else 0)
            plt.annotate(way, (rates[last], losses[last]), beside, textcoords="offset points", color=color, va="center")
    for place, rate in enumerate(rates):
        gone = [way for way, losses in ends.items() if place < len(losses) and not losses[place] < top]
        for nth, way in enumerate(gone):  # side by side
            beside = 1.06 ** (nth - (len(gone) - 1) / 2)
            plt.plot(rate * beside, 0.95 * top, "x", color=colors[way], ms=7, mew=2)
    plt.axhline(before, color="k", linestyle=":")
    plt.text(rates[-1], before + 0.01 * top, "before", ha="right", va="bottom")
    plt.axhline(1.25 * before, color="k", linestyle="--", linewidth=0.8)
    plt.text(rates[-1], 1.25 * before + 0.01 * top, "above it: fails", ha="right", va="bottom")
    plt.text(rates[0], 0.95 * top, "x: off the scale", va="center")
    plt.xscale("log")
    plt.xticks(rates, [f"{rate:.0f}" for rate in rates])
    plt.minorticks_off()
    plt.ylim(top=top)
    plt.xlabel("learning rate")
    plt.ylabel("loss after 120 batches")
