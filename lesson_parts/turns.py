"""The harness of lesson 12: strategies take turns on two ranks and are timed; exactness, messages and scores, too.

A strategy is a function make(tables, hvd) as in `helpers.exchange.strategies`. All functions take it as an argument, so
the ranks run what the caller wrote.
"""

import json
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from helpers.exchange.cost_model import bytes_sent
from helpers.exchange.strategies import DIM, STRATEGIES, batches, start_tables
from helpers.plots import COLORS, low_high, median_and_range, table
from helpers.text.skipgram import shard
from helpers.text.vocab import Vocab

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


def turns_on_rank(batching, plain, makers, turns, steps, ids, vocab):
    """Let all modes take turns on this rank: {mode: [what `train_some` returns, of each turn]}; see `measure`."""
    import horovod.tensorflow as hvd

    part = shard(ids, hvd.rank(), hvd.size())
    source = batches(batching, part, vocab, np.random.default_rng(hvd.rank()))
    steps = steps or max(6, min(200, 100_000 // batching.batch))
    alone = plain(start_tables(vocab, DIM, 0), None)

    def waiting(*batch):
        return hvd.allreduce(alone(*batch), name="one_number")

    modes = {ALONE: alone, APART: alone, WAITING: waiting}
    for name, make in makers.items():
        modes[name] = make(start_tables(vocab, DIM, 0), hvd)
    found = {mode: [] for mode in modes}
    for turn in range(1 + turns):
        for mode, step in modes.items():
            hvd.allreduce(tf.zeros(1))  # the ranks begin at the same time
            if mode != ALONE or hvd.rank() == 0:
                found[mode].append(train_some(step, source, steps if turn else 2))
    return {mode: rows[1:] for mode, rows in found.items()}  # in the first, short turn TensorFlow compiles


def measure(ranks, batching, plain, makers, ids, vocab, turns=5, steps=None):
    """Let a rank alone, two ranks without an exchange, and strategies take turns, so that disturbances hit all.

    Without an exchange there are two modes: with nothing sent, and with an allreduce of one number after each step, so
    that the ranks wait for each other.

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
    steps : int, optional
        Of a turn; without it 6 to 200, as many as have 100,000 pairs.

    Returns
    -------
    dict
        Of each mode, {"speed": pairs/s of all ranks in each turn, "ms": of a step in each turn, "sent": bytes a pair}.
    """
    results = ranks.run(turns_on_rank, batching, plain, makers, turns, steps, ids, vocab)
    found = {}
    for mode in [ALONE, APART, WAITING, *makers]:
        rows = np.array([rank[mode] for rank in results if rank[mode]])
        pairs, seconds, sent = np.moveaxis(rows, 2, 0)  # each [ranks, turns]
        speed = (pairs / seconds).sum(axis=0)
        milliseconds = 1e3 * len(rows) * batching.batch / speed
        found[mode] = {"speed": speed, "ms": milliseconds, "sent": sent.sum() / pairs.sum()}
    return found


def quotient(some, others):
    """Divide the medians of two lists of turns; it lies between the smallest and the largest quotient of a turn."""
    return np.median(some) / np.median(others)


def speed_up(found, mode):
    """Pairs/s of a mode over those of one rank, see `quotient`."""
    return quotient(found[mode]["speed"], found[ALONE]["speed"])


def show(found, runs=None):
    """Make a table of what `measure` found; beside the speed-up is the range of those of single turns.

    runs: what was recorded; a last column has the speed-ups of these, where the strategy is among them.
    """
    body = []
    for mode, row in found.items():
        ratio = row["speed"] / found[ALONE]["speed"]
        numbers = [f"{np.median(row['speed']) / 1e3:,.0f}", f"{np.median(row['ms']):,.1f}", f"{row['sent']:,.0f}"]
        body.append([mode, *numbers, f"{speed_up(found, mode):.2f}", low_high(ratio)])
        if runs:
            body[-1].append(recorded_speed_up(runs, found, mode))
    head = ["", "k pairs/s", "ms a step", "bytes a pair", "speed-up", "of single turns"]
    return table(head + (["speed-up, recorded"] if runs else []), body)


def compare(found, one, other):
    """Print how many times as fast one mode is as another, and in how many turns; return the ratios of the turns."""
    ratios = found[one]["speed"] / found[other]["speed"]
    print(f"{one} / {other}: {quotient(found[one]['speed'], found[other]['speed']):.2f} ({low_high(ratios)})")
    print(f"faster in {sum(ratios > 1)} of {len(ratios)} turns")
    return ratios


# ---- What `python -m benchmarks.strategy_turns` saved


def in_runs(runs, name, base=None, mode="one", of="two"):
    """Pairs/s of a strategy on two ranks over those of a mode of `base`, by default itself: `quotient` of each run.

    of: another mode of the strategy instead, "apart" or "number".
    """
    base = base or name
    return np.array([quotient(run[name][of], run[base][mode]) for run in runs])


def recorded_speed_up(runs, found, mode):
    """Format the speed-up of a mode of `found` in recorded runs, as "0.52 (0.49 to 0.60)"; "" without a record."""
    first = [*found][3]  # the modes before it were measured beside it
    if mode in (APART, WAITING) and first in runs[0]:
        return median_and_range(in_runs(runs, first, of="apart" if mode == APART else "number"))
    return median_and_range(in_runs(runs, mode)) if mode in runs[0] else ""


def sorted_row(label, ratios):
    """A row of a table: the ratios of all runs in one cell, smallest first."""
    return [label, ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))]


def draw_verdict(axis, shown, runs):
    """Draw how long two ranks take for the same pairs, one rank = 1: computing, and what the exchange adds.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    shown : dict of str to dict
        {strategy: what `measure` found now, with this strategy in it}: the bars, and a black mark where two ranks end
        that exchange one number.
    runs : list of dict
        What was recorded: a dot for each run.
    """
    labels = ["computing, two ranks", "what the exchange adds", "one number", "a recorded run"]
    for row, (name, found) in enumerate(shown.items()):
        begin, number, end = (1 / speed_up(found, mode) for mode in (APART, WAITING, name))
        dots = 1 / in_runs(runs, name)
        axis.barh(row, begin, 0.6, color=COLORS[0], label=labels[0])
        axis.barh(row, max(0, end - begin), 0.6, begin, color=COLORS[1], alpha=0.6, label=labels[1])
        axis.plot([number] * 2, [row - 0.42, row + 0.42], "k", lw=2.5, label=labels[2])
        axis.plot(dots, [row] * len(dots), "o", color="k", ms=4, alpha=0.6, label=labels[3])
        labels = [""] * 4
    axis.axvline(1, color="k", ls="--", lw=1)
    axis.text(1, -0.55, " one rank", va="bottom")
    axis.set(yticks=range(len(shown)), yticklabels=[*shown], xlim=(0, None), ylim=(len(shown) - 0.5, -1.1))
    axis.grid(visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.4, -0.16), ncols=2)


def verdict(runs, shown):
    """Make a table of what the strategies send and bring.

    runs: what was recorded, for the speed-ups. shown: {strategy: what `measure` found now, with this strategy in it},
    for the bytes.
    """
    body, above = [], None
    for name, found in shown.items():
        ratios = in_runs(runs, name)
        row = [name, f"{STRATEGIES[name].batch:,}", f"{found[name]['sent']:,.0f}", median_and_range(ratios)]
        row.append(f"{sum(ratios > 1)} of {len(runs)}")
        row.append(f"{sum(in_runs(runs, name, above, 'two') > 1)} of {len(runs)}" if above else "")
        body.append(row)
        above = name
    columns = ["", "exchange after, pairs", "bytes a pair", "speed-up, recorded", "pays in"]
    return table([*columns, "faster than the row above in"], body)


def step_ms(runs, name, mode):
    """Milliseconds of a step of a rank in a mode, "one", "apart", "number" or "two": the median of each run."""
    pairs = STRATEGIES[name].batch * (1 if mode == "one" else 2)
    return np.array([1e3 * pairs / np.median(run[name][mode]) for run in runs])


def draw_budget(axis, found, name, runs):
    """Draw how long one rank and two ranks take for two batches, and the budget.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    found : dict
        What `measure` found, with this strategy in it: the two rows above.
    name : str
        The strategy.
    runs : list of dict
        What was recorded: medians, the two thin rows below.
    """
    here = [np.median(found[mode]["ms"]) for mode in (ALONE, APART, WAITING, name)]
    recorded = [np.median(step_ms(runs, name, mode)) for mode in ("one", "apart", "number", "two")]
    _draw_two_rows(axis, here, (0, 1), 0.56, ["alone\n", "alone\n", "beside\n", "one number\n", "the rest\n"])
    _draw_two_rows(axis, recorded, (2.1, 2.7), 0.3, [""] * 5)
    names = ["1 rank,\n2 steps", "2 ranks,\n1 step each"]
    axis.set(yticks=(0, 1, 2.1, 2.7), yticklabels=[*names, "recorded: 1 rank", "2 ranks"], xlabel="ms")
    axis.grid(visible=False)
    axis.invert_yaxis()


def _draw_two_rows(axis, ms, rows, height, labels):
    """Draw ms of a step: alone, beside the other rank, with one number, with the strategy; and the budget."""
    alone, *ends = ms
    parts = [(rows[0], 0, alone), (rows[0], alone, 2 * alone), (rows[1], 0, ends[0])]
    parts += [(rows[1], *ends[:2]), (rows[1], *ends[1:])]
    looks = [(COLORS[0], 1)] * 3 + [(COLORS[1], 1), (COLORS[1], 0.6)]
    for (row, begin, end), (color, alpha), label in zip(parts, looks, labels, strict=True):
        axis.barh(row, end - begin, height, begin, color=color, alpha=alpha, edgecolor="white")
        axis.text((begin + end) / 2, row, f"{label}{end - begin:.1f}", color="white", ha="center", va="center")
    axis.plot([2 * alone] * 2, [rows[0] - height / 2, rows[1] - height / 2], "k--", lw=1)
    middle = (rows[0] + rows[1]) / 2
    arrow = {"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (ends[0], middle), (2 * alone, middle), arrowprops=arrow)
    axis.text(2 * alone, middle, f"  budget {2 * alone - ends[0]:.1f}", va="center")


def draw_travels(axis, times, vocab, examples):
    """Draw how often each row travels, as stairs; examples: rows whose words are written beside them.

    times: int array [V], of 64 exchanges.
    """
    axis.plot(np.arange(1, len(times) + 1), times, color=COLORS[0], lw=2)
    for row in examples:
        axis.plot(row + 1, times[row], "o", color=COLORS[1])
        label, side = f"{vocab.words[row]}, {vocab.counts[row]:,} times", "left" if row < 10 else "right"
        axis.annotate(label, (row + 1, times[row]), (0, -13), textcoords="offset points", ha=side)
    axis.set(xscale="log", xlabel="row, by frequency", ylabel="travels, of 64")
    axis.set_yscale("log", base=2)
    axis.set(yticks=2 ** np.arange(7), yticklabels=2 ** np.arange(7), ylim=(0.4, 100))


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
    text = Path(path).read_text().rstrip().rstrip("],")  # it may lack its end
    events = [event for event in json.loads(text + "]") if event.get("ph") in ("B", "E")]
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


def changes(runs, names, keys=("wordsim353", "found")):
    """Make a table of what two ranks bring beside one: `quotient` of the whole epoch's speeds, and mean scores.

    Beside them stands in how many seeds two ranks are faster, and in how many they score lower.

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
    found = [{(row["strategy"], row["ranks"]): row for row in run["rows"]} for run in runs]

    def of_both(name, key):
        return np.array([(rows[name, 1][key], rows[name, 2][key]) for rows in found]).T

    body = []
    for name in names:
        one, two = of_both(name, "pairs_per_s")
        cells = [f"{quotient(two, one):.2f}, above 1 in {sum(two > one)} of {len(runs)}"]
        for key in keys:
            k, n = formats[key]
            one, two = of_both(name, key) * k
            means = f"{one.mean():z.{n}f} → {two.mean():z.{n}f}"
            cells.append(f"{means}, lower in {sum(two < one)} of {len(runs)}")
        body.append([name, *cells])
    return table(["1 → 2 ranks", "speed-up", *(SCORES[key].format(asked) for key in keys)], body)
