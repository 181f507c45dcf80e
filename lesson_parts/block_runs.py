"""For lesson 13, around the loops that it shows: a text trained with one of them, checks, turns, tables and bars."""

import time
from timeit import repeat

import numpy as np

from helpers.exchange import due_rows, make_replicas
from helpers.plots import COLORS, SERIAL, median_and_range, table
from helpers.text import subsample
from helpers.word2vec import (
    Blocks,
    block_tables,
    block_trainer,
    count_intervals,
    cut_blocks,
    make_array_exchange,
    next_blocks,
    noise_table,
    pad_text,
    tile_weights,
)
from lesson_parts.rotation import rotated, take_turns

DIM = 128  # numbers of a row
LR = 0.045
LARGEST = 6.0  # the cut-off of a logit
LARGE = 200_000  # rows of a table whose rows are far away

# ---- A text, trained once


def loop_settings(vocab, blocks):
    """Make what a loop is called with: the highest rate of each row, and the weights of the squares.

    Returns
    -------
    rates : list of two float32 arrays [V]
        Of centers and contexts.
    weights : float32 array
        From `tile_weights`; its first columns are those of a block.

    Raises
    ------
    ValueError
        For blocks whose weights in tiles do not begin as those of the block do.
    """
    keep = vocab.keep_probability(1e-4).astype(np.float32)
    weights = block_trainer.pair_weights(blocks)[1].numpy()
    tiles = tile_weights(weights, blocks)
    if (tiles[: len(weights), : weights.shape[1]] != weights).any():
        raise ValueError("block_loop needs an odd window and an even number of tokens")
    return [of_row.numpy() for of_row in block_trainer.highest_rates(vocab, keep, blocks)], tiles


def train_once(ids, vocab, loop, blocks=None, hvd=None):
    """Train a text once with a loop over blocks, as `train_blocks` does with its own.

    Parameters
    ----------
    ids : int array [n]
        The text, on ranks the part of this rank.
    vocab : Vocab
    loop : function
        Called as `train_words` of helpers is.
    blocks : Blocks, optional
    hvd : module, optional
        horovod.tensorflow, on ranks: they exchange as overlap does in lesson 12.

    Returns
    -------
    rows : float32 array [V, dim]
        Of the centers.
    noise_seconds : float
        In which the random words were drawn.
    seconds : float
        In which blocks were cut, trained and exchanged.
    """
    blocks = blocks or Blocks()
    seed = [0, hvd.rank() if hvd else 0]
    keep = vocab.keep_probability(1e-4).astype(np.float32)
    rates, weights = loop_settings(vocab, blocks)
    settings = weights, blocks.window, blocks.random
    tables = block_tables(len(vocab), DIM, 0)
    common, exchange, exchange_centers = make_replicas(tables, make_array_exchange, hvd=hvd)
    begin = time.perf_counter()
    noise = noise_table(vocab, np.random.default_rng(seed), blocks)
    noise_seconds = time.perf_counter() - begin

    intervals = count_intervals((ids > 0).sum(), blocks, hvd)
    begin = time.perf_counter()
    parts = next_blocks(ids, keep, intervals, noise, seed, blocks)
    for interval, (words, _) in zip(range(intervals), parts):
        lr = LR * (1 - interval / intervals)
        words = words.reshape(-1, words.shape[-1])  # the blocks of all steps
        with exchange(due_rows(interval, len(vocab), blocks.hot)):
            loop(*tables, *rates, words, *settings, lr, LARGEST)
    with exchange_centers(np.arange(len(vocab))):
        pass
    return common[0], noise_seconds, time.perf_counter() - begin


def train_part(parts, vocab, loop):
    """On each rank: train this rank's part of a text, if there is one; alone if there is only one part.

    Returns
    -------
    rows : float32 array [V, dim] or None
    seconds : float
        As in `train_once`, without those of the random words; 0 on a rank without a part.
    """
    import horovod.tensorflow as hvd

    if hvd.rank() >= len(parts):
        return None, 0.0
    rows, _, seconds = train_once(parts[hvd.rank()], vocab, loop, hvd=hvd if len(parts) > 1 else None)
    return rows, seconds


# ---- Checks


def most_apart(some, others):
    """Tell how far the arrays of two lists are apart at most."""
    return max(abs(a - b).max() for a, b in zip(some, others))


def changes_of_block(loop, centers, contexts, weights, blocks):
    """Let a loop train one block at rate 1, and return what it has changed.

    Its rate is 2 and the highest rate of each row 1, so a loop that ignored the latter would change twice as much.

    Parameters
    ----------
    loop : function
        Called as `train_words` of helpers is.
    centers, contexts : float32 arrays [rows, dim]
        The rows of the block.
    weights : float32 array
        From `pair_weights`.
    blocks : Blocks

    Returns
    -------
    list of two float32 arrays
        The changes of `centers` and of `contexts`.
    """
    n = len(contexts)
    inside = slice(1 + blocks.window, 1 + blocks.window + len(centers))
    tables = np.zeros((2, 1 + n, centers.shape[1]), np.float32)  # row 0 is padding
    tables[0, inside] = centers
    tables[1, 1:] = contexts
    words = np.arange(1, 1 + n, dtype=np.int32)[np.newaxis]
    rates = np.ones(1 + n, np.float32)
    loop(*tables, rates, rates, words, tile_weights(weights, blocks), blocks.window, blocks.random, 2.0, LARGEST)
    return [tables[0, inside] - centers, tables[1, 1:] - contexts]


def trained_tables(rows, length=1.0):
    """Make two tables whose rows are about as long as after some training; the row of id 0 is 0."""
    rng = np.random.default_rng(0)
    found = rng.standard_normal((2, rows, DIM), np.float32)
    found *= np.float32(length / np.sqrt(DIM))
    found[:, 0] = 0
    return [*found]


def tables_after(loop, words, vocab, blocks):
    """Let a loop train some blocks, from tables with long rows, so that some logits are beyond the cut-off."""
    tables = trained_tables(len(vocab), 5.0)
    rates, weights = loop_settings(vocab, blocks)
    loop(*tables, *rates, words, weights, blocks.window, blocks.random, LR, LARGEST)
    return tables


def tables_after_graph(words, vocab, blocks):
    """Do what `tables_after` does with `block_changes`, the three products in a graph of TensorFlow."""
    import tensorflow as tf

    tables = [tf.Variable(side) for side in trained_tables(len(vocab), 5.0)]
    rates, _ = loop_settings(vocab, blocks)
    train = block_trainer.make_train(tables, rates, blocks, block_trainer.block_changes)
    train(words[:, np.newaxis], LR)  # steps of one block
    return [side.numpy() for side in tables]


# ---- Near and far rows


def three_kinds_of_rows(ids, vocab, blocks, steps=32):
    """Take blocks and pairs of a text, and let their words stand for rows of three kinds.

    Parameters
    ----------
    ids : int array [n]
        The text.
    vocab : Vocab
    blocks : Blocks
    steps : int
        So many steps of blocks.

    Returns
    -------
    dict of str to tuple
        {"15 rows", "text" or "at random": (rows of a table, words of the blocks, int32 [steps, blocks, words], pairs
        drawn from them, int32 [pairs, 2 + negatives])}. The same places of a text are trained in each.
    """
    from lesson_parts.rivals import draw_pairs  # not on a rank: it imports gensim

    draw = np.random.default_rng(0)
    keep = vocab.keep_probability(1e-4).astype(np.float32)
    noise = noise_table(vocab, draw, blocks)[:5_000]
    n = steps * blocks.blocks * blocks.tokens
    text = subsample(ids[ids > 0], keep, draw)[:n]
    row_of_place = np.concatenate([[0], text, noise.ravel()]).astype(np.int32)
    noise_places = (n + 1 + np.arange(noise.size, dtype=np.int32)).reshape(noise.shape)
    padded = pad_text(np.arange(1, n + 1, dtype=np.int32), blocks)
    places = cut_blocks(padded, 0, 1, noise_places, draw, blocks)
    pairs = draw_pairs(places.reshape(-1, places.shape[-1]), blocks.window, blocks.random, blocks.negatives)
    kinds = {
        "15 rows": (len(vocab), 1 + row_of_place % 15),
        "text": (len(vocab), row_of_place),
        "at random": (LARGE, draw.integers(1, LARGE, len(row_of_place), dtype=np.int32)),
    }
    return {kind: (rows, row_of[places], row_of[pairs]) for kind, (rows, row_of) in kinds.items()}


def megabytes_of(words, blocks):
    """Count the MB of the rows that blocks touch, in both tables, each row once."""
    inside = words[..., blocks.window : blocks.window + blocks.tokens]
    return sum(len(np.unique(side)) for side in (inside, words)) * DIM * 4 / 1e6


def pairs_per_second(kind, by_pairs, loops, blocks, turns):
    """On rank 0: time a loop over pairs, loops over blocks and TensorFlow's graph on rows of one kind, in turns.

    At rate 0 all do their work and leave the rows as they were. The faster of two calls in a turn counts.

    Parameters
    ----------
    kind : tuple
        From `three_kinds_of_rows`.
    by_pairs : function
        by_pairs(center_table, context_table, pairs, lr, largest).
    loops : dict of str to function
    blocks : Blocks
    turns : int

    Returns
    -------
    speeds : dict of str to numpy.ndarray
        {name: million pairs/s, turn by turn}; names are "pair by pair", those of the loops, and "graph".
    moved : float
        How far a number of a row has moved: 0.
    """
    import horovod.tensorflow as hvd
    import tensorflow as tf

    if hvd.rank():
        return None
    rows, steps, pairs = kind
    words = steps.reshape(-1, steps.shape[-1])
    tables = trained_tables(rows)
    before = [side[:1_000].copy() for side in tables]
    rates = [np.ones(rows, np.float32)] * 2
    weights = tile_weights(block_trainer.pair_weights(blocks)[1], blocks)
    settings = weights, blocks.window, blocks.random, 0.0, LARGEST
    variables = [tf.Variable(side) for side in tables]
    graph = block_trainer.make_train(variables, rates, blocks, block_trainer.block_changes)
    calls = {"pair by pair": lambda: by_pairs(*tables, pairs, 0.0, LARGEST)}
    for name, loop in loops.items():
        calls[name] = lambda loop=loop: loop(*tables, *rates, words, *settings)
    calls["graph"] = lambda: graph(steps, 0.0)
    for call in calls.values():
        call()  # compiles
    timed = {name: lambda call=call: min(repeat(call, number=1, repeat=2)) for name, call in calls.items()}
    n = len(words) * blocks.tokens * (blocks.window + 1)  # pairs for which the blocks count
    counts = dict.fromkeys(calls, n) | {"pair by pair": len(pairs)}
    seconds = take_turns(timed, turns)
    speeds = {name: counts[name] / np.array(seconds[name]) / 1e6 for name in calls}
    return speeds, most_apart(before, [side[:1_000] for side in tables])


def machine_speed():
    """On rank 0: (flop/s of a product of two large matrices, bytes/s of a copy of 64 MiB), the fastest of nine."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    if hvd.rank():
        return None
    square = tf.random.uniform([1_024, 1_024])
    source = np.ones(16 * 2**20, np.float32)
    target = np.empty_like(source)

    def multiply():
        return tf.matmul(square, square).numpy()

    def copy():
        np.copyto(target, source)

    product, copied = (min(repeat(work, number=1, repeat=10)[1:]) for work in (multiply, copy))
    return 2 * 1_024**3 / product, 2 * source.nbytes / copied


# ---- Turns, and what they gave


def turn_about(calls, turns):
    """Let several calls take turns, as `take_turns` does, and print a line after each turn.

    Parameters
    ----------
    calls : dict of str to function
        {name: call()}, which returns seconds.
    turns : int

    Returns
    -------
    dict of str to list of float
        {name: the seconds, turn by turn}.
    """
    seconds = {name: [] for name in calls}
    for turn in range(turns):
        for name in rotated([*calls], turn):
            seconds[name].append(calls[name]())
        latest = [f"{name} {seconds[name][-1]:.1f}" for name in calls]
        print(f"turn {turn + 1}, s:", ", ".join(latest))
    return seconds


def table_of_speeds(speeds, unit):
    """Make a table of speeds, beside the line above and beside the first line; ratios are taken turn by turn.

    Parameters
    ----------
    speeds : dict of str to numpy.ndarray
        {name: speed, turn by turn}, from top to bottom.
    unit : str
    """
    first, *_ = names = [*speeds]
    body = [[first, median_and_range(speeds[first]), "-", "-"]]
    for above, name in zip(names, names[1:]):
        ratios = [speeds[name] / speeds[other] for other in (above, first)]
        body.append([name, *map(median_and_range, [speeds[name], *ratios])])
    return table(["median of turns (range)", unit, "x the line above", f"x {first}"], body)


def table_of_steps(measured, steps):
    """Make a table of ratios, turn by turn, on each kind of rows.

    Parameters
    ----------
    measured : dict of str to dict
        {kind of rows: {name: speed, turn by turn}}.
    steps : list of (str, str)
        What is compared with what.
    """
    body = []
    for one, other in steps:
        ratios = [of[one] / of[other] for of in measured.values()]
        body.append([f"{one} / {other}", *map(median_and_range, ratios)])
    return table(["turn by turn: median (range)", *measured], body)


def table_of_roofline(speeds, intensities, flops, copied):
    """Make a table of what the roofline allows, and of what loops reach.

    Parameters
    ----------
    speeds : dict of str to numpy.ndarray
        {"pair by pair", "block" or "+ tiles": million pairs/s, turn by turn}.
    intensities : dict of str to float
        {"pair by pair" or "block": flop/byte}.
    flops, copied : float
        From `machine_speed`.
    """
    of_square = 3 * 2 * DIM  # flop
    of_block = (10 + 22) / 6 * of_square  # squares of a center, pairs of a center
    body = []
    for name, at, of_pair in (
        ("pair by pair", intensities["pair by pair"], 6 * of_square),
        ("block", intensities["block"], of_block),
        ("+ tiles", intensities["block"], of_block),
    ):
        limit = min(flops, at * copied) / 1e9
        reached = float(np.median(speeds[name])) * of_pair / 1e3  # of million pairs/s
        body.append([name, f"{at:.2f}", f"{limit:.1f}", f"{reached:.1f}", f"{reached / limit:.0%}"])
    return table(["rows at random", "flop/byte", "limit, GFLOP/s", "reached, GFLOP/s", "of the limit"], body)


def draw_speeds(axis, speeds, unit):
    """Draw a bar for each speed, its median, with a line from the slowest to the fastest turn, and x the first one."""
    first, *_ = names = [*speeds]
    for name, color in zip(names, [SERIAL, *COLORS]):
        axis.barh(name, np.median(speeds[name]), color=color)
        slowest, fastest = min(speeds[name]), max(speeds[name])
        axis.plot([slowest, fastest], [name, name], color="black")
        times = np.median(speeds[name] / speeds[first])
        axis.text(fastest, name, f"  {times:.2f} x {first}", va="center")
    axis.invert_yaxis()
    axis.grid(False)
    axis.margins(x=0.35)
    axis.set_xlabel(f"{unit}: median (line: all turns)")


def draw_steps(axis, measured, steps):
    """Draw what each step brings on each kind of rows: the medians as a line, all turns as a bar from end to end.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    measured : dict of str to dict
        {kind of rows: {name: speed, turn by turn}}.
    steps : list of (str, str)
        What is compared with what.

    Returns
    -------
    dict of str to list of float
        {what was compared: its median on each kind of rows}.
    """
    medians = {}
    for number, ((one, other), color) in enumerate(zip(steps, COLORS)):
        ratios = [of[one] / of[other] for of in measured.values()]
        places = np.arange(len(ratios)) + 0.08 * (number - 1)
        medians[one] = [float(np.median(turns)) for turns in ratios]
        axis.plot(places, medians[one], "o-", color=color, label=f"{one} / {other}")
        for place, turns in zip(places, ratios):
            axis.plot([place, place], [min(turns), max(turns)], color=color)
    axis.axhline(1, color="black", lw=0.8, ls=":")
    axis.set_xticks(range(len(measured)), [*measured])
    axis.set(ylabel="times as fast (bar: all turns)", ylim=(0, None))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    return medians
