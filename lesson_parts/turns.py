"""The harness of lesson 12: strategies take turns on two ranks and are timed; exactness, messages and scores, too.

A strategy is a function make(tables, hvd) as in `lesson_parts.strategies`. All functions take it as an argument, so
the ranks run what the caller wrote.
"""

import math
import textwrap
import time

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from helpers.exchange.cost_model import bytes_sent
from helpers.plots import COLORS, median_and_range, table
from helpers.text.skipgram import shard
from helpers.text.vocab import Vocab
from lesson_parts.rotation import rotated
from lesson_parts.strategies import DIM, STRATEGIES, batches, start_tables
from lesson_parts.timeline import timeline_events

ALONE, APART, WAITING = "1 rank", "2 ranks, no exchange", "2 ranks, one number"  # modes of every measurement


# ---- Speed


def train_some(step, source, steps):
    """Do some steps.

    Returns
    -------
    pairs : int
    seconds : float
    bytes : float
        What this process has sent meanwhile, see `bytes_sent`.
    """
    seen, sent, begin = 0, bytes_sent(), time.perf_counter()
    for _ in range(steps):
        centers, contexts = next(source)
        loss = step(centers, contexts, 0.1)
        seen += len(centers)
    loss.numpy()  # waits for the last one
    return seen, time.perf_counter() - begin, bytes_sent() - sent


def steps_for(seconds, step, source):
    """Compile a step, and find how many of them take so long on rank 0: a float, the same on all ranks."""
    import horovod.tensorflow as hvd

    pairs, _, _ = train_some(step, source, 1)
    trial = min(10, 1 + 10_000 // max(1, pairs))
    _, took, _ = train_some(step, source, trial)
    steps = tf.constant(trial * seconds / took, tf.float64)
    return float(hvd.broadcast(steps, root_rank=0))


def turns_on_rank(batching, plain, makers, turns, seconds, ids, vocab):
    """Let all modes take turns on this rank, see `measure`.

    Returns
    -------
    list of (str, tuple)
        In the order of time, a mode and what `train_some` returned. Rank 0 alone is the first and the last of them, and
        stands between any two others; the other ranks have nan for it.
    """
    import horovod.tensorflow as hvd

    part = shard(ids, hvd.rank(), hvd.size())
    source = batches(batching, part, vocab, np.random.default_rng(hvd.rank()))
    alone = plain(start_tables(vocab, DIM, 0), None)

    def waiting(*batch):
        return hvd.allreduce(alone(*batch), name="one_number")

    ways = {APART: alone, WAITING: waiting}
    for name, make in makers.items():
        ways[name] = make(start_tables(vocab, DIM, 0), hvd)
    steps = {ALONE: max(1, round(steps_for(seconds / 2, alone, source)))}
    steps |= {way: math.ceil(steps_for(seconds, step, source)) for way, step in ways.items()}
    log = []

    def time_part(mode, step):
        hvd.allreduce(tf.zeros(1))  # the ranks begin at the same time
        idle = mode == ALONE and hvd.rank() > 0
        log.append((mode, (np.nan,) * 3 if idle else train_some(step, source, steps[mode])))

    time_part(ALONE, alone)
    for turn in range(turns):
        for name in rotated([*ways], turn):
            time_part(name, ways[name])
            time_part(ALONE, alone)
    return log


def measure(ranks, batching, plain, makers, ids, vocab, turns=7, seconds=0.32):
    """Let strategies on all ranks take turns, and rank 0 alone directly before and after each of them.

    Each turn begins with another strategy. Without an exchange there are two modes: with nothing sent, and with an
    allreduce of one number after each step, so that the ranks wait for each other.

    Parameters
    ----------
    ranks : Ranks
    batching : Strategy
        What a step trains on.
    plain : function
        make(tables, None) of the step of a rank that exchanges nothing.
    makers : dict of str to function
        The strategies by name.
    ids, vocab
        The text.
    turns : int
    seconds : float
        How long each trains in a turn, about, and at least one step; rank 0 alone half as long before and after it.

    Returns
    -------
    dict
        Of each mode, {"speed-up": pairs/s of all ranks over those of rank 0 alone directly before and after, of each
        turn; "speed": that times the median pairs/s of rank 0 alone; "ms": of a step at this speed; "sent": bytes a
        pair}. Of rank 0 alone, "speed" and "ms" are of each of its parts.
    """
    logs = ranks.run(turns_on_rank, batching, plain, makers, turns, seconds, ids, vocab)
    modes = [mode for mode, _ in logs[0]]
    rows = np.array([[row for _, row in log] for log in logs])
    pairs, took, sent = np.moveaxis(rows, 2, 0)  # each [ranks, parts]
    at = np.flatnonzero([mode == ALONE for mode in modes])
    one_rank = pairs[0, at] / took[0, at]
    found = {ALONE: {"speed-up": np.ones(1), "speed": one_rank, "ms": 1e3 * batching.batch / one_rank}}
    found[ALONE]["sent"] = sent[0, at].sum() / pairs[0, at].sum()
    for mode in [APART, WAITING, *makers]:
        at = np.flatnonzero([other == mode for other in modes])
        before, after = at - 1, at + 1
        baseline = (pairs[0, before] + pairs[0, after]) / (took[0, before] + took[0, after])
        ratio = (pairs[:, at] / took[:, at]).sum(axis=0) / baseline
        speed = ratio * np.median(one_rank)
        milliseconds = 1e3 * len(logs) * batching.batch / speed
        found[mode] = {"speed-up": ratio, "speed": speed, "ms": milliseconds}
        found[mode]["sent"] = sent[:, at].sum() / pairs[:, at].sum()
    return found


def quotient(some, others):
    """Divide the medians of two lists of turns; it lies between the smallest and the largest quotient of a turn."""
    return np.median(some) / np.median(others)


def speed_up(found, mode):
    """The median of the turns' speed-ups."""
    return np.median(found[mode]["speed-up"])


def show(found):
    """Make a table of what `measure` found: medians, and of the speed-up the range of the turns."""
    body = []
    for mode, row in found.items():
        ratios = row["speed-up"]
        numbers = [f"{np.median(row['speed']) / 1e3:,.0f}", f"{np.median(row['ms']):,.1f}", f"{row['sent']:,.0f}"]
        last = ["1", ""] if mode == ALONE else [median_and_range(ratios), f"{sum(ratios > 1)} of {len(ratios)}"]
        body.append([mode, *numbers, *last])
    head = ["", "k pairs/s", "ms a step", "bytes a pair", "speed-up", "above 1 in"]
    return table(head, body)


def compare(found, one, other):
    """Print how many times as fast one mode is as another, and in how many turns; return the ratios of the turns."""
    ratios = found[one]["speed-up"] / found[other]["speed-up"]
    print(f"{one} / {other}: {median_and_range(ratios)}, faster in {sum(ratios > 1)} of {len(ratios)} turns")
    return ratios


# ---- What `python -m benchmarks.strategy_turns` saved


def in_runs(runs, name, base=None, mode="one", of="two"):
    """Pairs/s of a strategy on two ranks over those of a mode of `base`, by default itself: `quotient` of each run.

    of: another mode of the strategy instead, "apart" or "number".
    """
    base = base or name
    return np.array([quotient(run[name][of], run[base][mode]) for run in runs])


def sorted_row(label, ratios):
    """A row of a table: the ratios of all runs in one cell, smallest first."""
    return [label, ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))]


def who_pays(shown):
    """Say with which strategies two ranks are faster than one, with which slower, and with which that is open.

    Faster is who has all turns above 1, slower who has all below; with turns on both sides it is open.

    Parameters
    ----------
    shown : dict of str to dict
        {strategy: what `measure` found, with this strategy in it}.

    Returns
    -------
    str
        A line or more for each of the three, if there are any.
    """
    pays = [name for name, found in shown.items() if min(found[name]["speed-up"]) > 1]
    slower = [name for name, found in shown.items() if max(found[name]["speed-up"]) < 1]
    between = [name for name in shown if name not in pays + slower]
    lines = ["A second rank pays with " + (", ".join(pays) or "none of them for certain")]
    if slower:
        lines.append("It is slower with " + ", ".join(slower))
    if between:
        lines.append("Open: " + ", ".join(between))
    return "\n".join(textwrap.fill(line, 50) for line in lines)


def exchange_shares(runs, name):
    """Compute which part of its budget the exchange of a strategy takes in each run: above 1 a second rank is slower.

    Parameters
    ----------
    runs : list of dict
        What was recorded.
    name : str
        The strategy.

    Returns
    -------
    float array [runs]
    """
    beside, together = 1 / in_runs(runs, name, of="apart"), 1 / in_runs(runs, name)  # one rank = 1
    return (together - beside) / (1 - beside)


def draw_verdict(shown, runs):
    """Draw how long two ranks take for the same pairs, one rank = 1: computing, and what the exchange adds.

    Parameters
    ----------
    shown : dict of str to dict
        {strategy: what `measure` found now, with this strategy in it}: the bars, a line from the fastest turn to the
        slowest, and the pairs/s written beside them.
    runs : list of dict
        What was recorded: a dot for each run, below the bar.
    """
    _, axis = plt.subplots(figsize=(5.4, 4.2))
    labels = ["computing, two ranks", "what the exchange adds", "fastest to slowest turn", "a recorded run"]
    margin = axis.get_yaxis_transform()  # x from 0 to 1, y in rows
    for row, (name, found) in enumerate(shown.items()):
        begin, end = (1 / speed_up(found, mode) for mode in (APART, name))
        turns = 1 / found[name]["speed-up"]
        dots = 1 / in_runs(runs, name)
        axis.barh(row, begin, 0.5, color=COLORS[0], label=labels[0])
        axis.barh(row, max(0, end - begin), 0.5, begin, color=COLORS[1], alpha=0.5, label=labels[1])
        axis.plot([min(turns), max(turns)], [row] * 2, "k|-", lw=1.5, label=labels[2])
        axis.plot(dots, [row + 0.37] * len(dots), "o", color="k", mfc="none", ms=4, label=labels[3])
        one, two = (np.median(found[mode]["speed"]) / 1e3 for mode in (ALONE, name))
        axis.text(1.03, row, f"{one:,.0f} → {two:,.0f}", transform=margin, va="center")
        labels = [""] * 4
    axis.text(1.03, -0.75, "k pairs/s,\n1 → 2 ranks", transform=margin, va="center")
    axis.axvline(1, color="k", ls="--", lw=1)
    axis.text(1, -0.5, " one rank", va="bottom")
    axis.set(yticks=range(len(shown)), yticklabels=[*shown], xlim=(0, None), ylim=(len(shown) - 0.4, -1.1))
    axis.set(xlabel="time for the same pairs, one rank = 1", title=who_pays(shown))
    axis.grid(visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.35, -0.18), ncols=2)
    plt.show()


def verdict(runs, names):
    """Make a table of how strategies are judged by what was recorded: medians of the runs, with their range."""
    body, above = [], None
    for name in names:
        row = [name, f"{STRATEGIES[name].batch:,}", median_and_range(exchange_shares(runs, name))]
        row.append(median_and_range(in_runs(runs, name)))
        row.append(f"{sum(in_runs(runs, name, above, 'two') > 1)} of {len(runs)}" if above else "")
        body.append(row)
        above = name
    columns = ["recorded", "an exchange after, pairs", "exchange / budget", "speed-up"]
    return table([*columns, "faster than the row above in"], body)


def draw_budget(found, name):
    """Draw how long one rank and two ranks take for two batches, and the budget of the exchange.

    Parameters
    ----------
    found : dict
        What `measure` found, with this strategy in it.
    name : str
        The strategy.
    """
    _, axis = plt.subplots(figsize=(6, 2.9))
    alone, beside, number, both = [np.median(found[mode]["ms"]) for mode in (ALONE, APART, WAITING, name)]
    parts = [(0, 0, alone, "alone", "center"), (0, alone, 2 * alone, "alone", "center")]
    parts += [(1, 0, beside, "beside", "center")]
    parts += [(1, beside, number, "one number", "right"), (1, number, both, "the rest", "left")]
    for row, begin, end, label, side in parts:
        computing = side == "center"
        look = {"color": COLORS[0]} if computing else {"color": COLORS[1], "alpha": 0.35}
        axis.barh(row, end - begin, 0.6, begin, **look)
        axis.plot([end] * 2, [row - 0.3, row + 0.3], color="white", lw=2)
        text = f"{label}\n{end - begin:.1f}"
        if end - begin > 0.2 * max(both, 2 * alone):
            ink = "white" if computing else "black"
            axis.text((begin + end) / 2, row, text, color=ink, ha="center", va="center")
        else:  # too narrow for its text, which stands below
            place, away = (end, -4) if side == "right" else (begin, 4)
            axis.annotate(text, (place, row + 0.35), (away, 0), textcoords="offset points", ha=side, va="top")
    room = 2 * alone - beside
    axis.plot([2 * alone] * 2, [-0.3, 0.7], "k--", lw=1)
    axis.annotate("", (beside, 0.5), (2 * alone, 0.5), arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
    axis.text(max(2 * alone, beside), 0.5, f"  budget {room:.1f}", va="center")
    axis.set(yticks=(0, 1), yticklabels=["1 rank,\n2 steps", "2 ranks,\n1 step each"], xlabel="ms")
    axis.set(ylim=(1.85, -0.4), xlim=(0, 1.12 * max(both, 2 * alone)))
    takes = f"takes {(both - beside) / room:.2f} times its budget" if room > 0 else "has no budget"
    axis.set(title=f"{name}: the exchange {takes}")
    axis.grid(visible=False)
    plt.show()


def draw_travels(times, vocab, examples):
    """Draw how often each row travels, as stairs; examples: rows whose words are written beside them.

    times: int array [V], of 64 exchanges.
    """
    _, axis = plt.subplots(figsize=(6, 2.6))
    axis.plot(np.arange(1, len(times) + 1), times, color=COLORS[0], lw=2)
    for row in examples:
        axis.plot(row + 1, times[row], "o", color=COLORS[1])
        label, side = f"{vocab.words[row]} ({vocab.counts[row]:,} in the text)", "left" if row < 10 else "right"
        axis.annotate(label, (row + 1, times[row]), (0, -13), textcoords="offset points", ha=side)
    axis.set(xscale="log", xlabel="row, by frequency", ylabel="exchanges, of 64")
    axis.set_yscale("log", base=2)
    axis.set(yticks=2 ** np.arange(7), yticklabels=2 ** np.arange(7), ylim=(0.4, 100))
    axis.set(title="The rarer a word, the less often its row travels")
    plt.show()


# ---- Exactness


def toy(make, lr, final=False, hvd=None):
    """Train a table of 100 words and 8 numbers each, five steps of 64 pairs, on this rank's part of each step.

    final: one more exchange, of all rows, without pairs. Returns the three tables.
    """
    tf.random.set_seed(3)  # the same negatives everywhere
    pairs = np.random.default_rng(0).integers(0, 100, (5, 2, 64), dtype=np.int32)
    tables = start_tables(Vocab([*map(str, range(100))], [1] * 100), 8, 0)
    step = make(tables, hvd)
    rank, size = (hvd.rank(), hvd.size()) if hvd else (0, 1)
    for centers, contexts in np.split(pairs, size, axis=2)[rank]:
        step(centers, contexts, lr)
    if final:
        step([], [], 0.0, np.arange(100))
    return [table.numpy() for table in tables]


def most_apart(some, others):
    """Of each table, how far two replicas are apart at most: a list of three float."""
    return [float(abs(one - other).max()) for one, other in zip(some, others)]


def toy_on_rank(*arguments):
    """Call `toy` on a rank."""
    import horovod.tensorflow as hvd

    return toy(*arguments, hvd=hvd)


def assert_serial(ranks, make, lr_of_rank=30.0):
    """Assert that two ranks, each with half of every batch of `toy`, end as one process, in each of three tables."""
    serial, untrained = toy(make, 30.0), toy(make, 0.0)
    first, second = ranks.run(toy_on_rank, make, lr_of_rank)
    learned, apart = min(most_apart(serial, untrained)), max(most_apart(first, serial))
    assert max(most_apart(first, second)) == 0 and apart < 1e-5 < 0.01 < learned
    print(f"each table moved by {learned:.2f} or more; two ranks = one process, to 1e-5")


# ---- Messages


def record(path, batching, make, ids, vocab, steps):
    """Record some steps in Horovod's timeline; the ranks were started with HOROVOD_TIMELINE=DYNAMIC."""
    import horovod.tensorflow as hvd

    source = batches(batching, shard(ids, hvd.rank(), hvd.size()), vocab, np.random.default_rng(0))
    step = make(start_tables(vocab, DIM, 0), hvd)
    step(*next(source), 0.1).numpy()  # compiles
    hvd.start_timeline(path)
    time.sleep(0.2)  # until it has begun
    for _ in range(steps):
        step(*next(source), 0.1).numpy()
    time.sleep(0.2)  # until all is written
    hvd.stop_timeline()


def count_messages(path):
    """Count in a timeline: (tensors, messages).

    An event is where a phase of a tensor begins ("B") or ends ("E"). When Horovod fuses tensors into one message, their
    transfers begin directly one after the other, with no other event between them. So a message is a transfer that
    begins where the event before was not the beginning of a transfer.
    """
    events = [event for event in timeline_events(path) if event.get("ph") in ("B", "E")]
    begins = [event["ph"] == "B" and event["name"].startswith(("GLOO_", "MPI_")) for event in events]
    return sum(begins), sum(this and not last for last, this in zip([False, *begins[:-1]], begins))


# ---- What they learn

SCORES = {"wordsim353": "WordSim-353", "simlex999": "SimLex-999", "analogy": "analogies, %", "found": "found of {}"}


def quality_table(runs, trained):
    """Make a table of scores, those of all seeds in one cell.

    Parameters
    ----------
    runs : list of dict
        What `python -m benchmarks.strategies` saved, seed by seed.
    trained : dict of str to (str, int)
        The rows: {label: (strategy, ranks)}.
    """
    rows = [row for run in runs for row in run["rows"]]
    asked = runs[0]["settings"]["asked"]
    scores = {"wordsim353": (1, 2), "simlex999": (1, 2), "analogy": (100, 1), "found": (asked, 0)}
    body = []
    for label, which in trained.items():
        these = [row for row in rows if (row["strategy"], row["ranks"]) == which]
        cells = [", ".join(f"{row[key] * k:z.{n}f}" for row in these) for key, (k, n) in scores.items()]
        body.append([label, *cells])
    seeds = ", ".join(str(run["settings"]["seed"]) for run in runs)
    head = f"seeds {seeds}" if len(runs) > 1 else f"seed {seeds}"
    return table([head, *(SCORES[key].format(asked) for key in scores)], body)


def of_epochs(runs, name, key):
    """A number of a whole epoch on one rank and on two: arrays with one number a seed."""
    rows = [{row["ranks"]: row for row in run["rows"] if row["strategy"] == name} for run in runs]
    return np.array([(row[1][key], row[2][key]) for row in rows]).T


def changes(runs, names, keys=("wordsim353", "found")):
    """Make a table of whole epochs: two ranks' pairs/s over one rank's, seed by seed, and mean scores of both.

    Behind the means stands in how many seeds two ranks score lower.

    Parameters
    ----------
    runs : list of dict
        What `python -m benchmarks.strategies` saved, seed by seed.
    names : sequence of str
        The strategies.
    keys : sequence of str
        Which scores: "wordsim353", "simlex999", "analogy", "found".
    """
    asked = runs[0]["settings"]["asked"]
    formats = {"wordsim353": (1, 2), "simlex999": (1, 2), "analogy": (100, 1), "found": (asked, 1)}
    body = []
    for name in names:
        one, two = of_epochs(runs, name, "pairs_per_s")
        cells = [", ".join(f"{ratio:.2f}" for ratio in two / one)]
        for key in keys:
            k, n = formats[key]
            one, two = of_epochs(runs, name, key) * k
            means = f"{one.mean():z.{n}f} → {two.mean():z.{n}f}"
            cells.append(f"{means}, lower in {sum(two < one)} of {len(runs)}")
        body.append([name, *cells])
    scored = [f"{SCORES[key].format(asked)}, 1 → 2 ranks" for key in keys]
    return table(["whole epochs", "speed-up, by seed", *scored], body)
