"""The runs of lesson 14: one text, trained by one process or by ranks in different ways, and what came out."""

from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import numpy as np
import tensorflow as tf

from helpers.exchange import bytes_sent, merge_changes
from helpers.text import subsample
from helpers.word2vec import (
    block_loss,
    count_intervals,
    cut_blocks,
    interleave,
    noise_table,
    pad_text,
    pair_weights,
    train_blocks,
)
from helpers.word2vec.blocks import BLOCKS

HOT = 250  # of a message so many rows, the first: of them the factor is noted
LEAST = 0.01  # loss that the logarithmic figure shows


# ---- One training


def train_text(text, vocab, *, hvd=None, merge=merge_changes, factors=None, **options):
    """Train tables on a text, in one process or on this rank.

    Parameters
    ----------
    text : int array
        On ranks what this rank reads.
    vocab : Vocab
    hvd : module, optional
        horovod.tensorflow, on ranks.
    merge : function
        How the changes of ranks become one. It runs through TensorFlow: also `merge_changes`, which the trainer has
        compiled, too.
    factors : list, optional
        It is extended by what `noting` notes of the exchanges between intervals, and not of the last one.
    **options
        Of `train_blocks`.

    Returns
    -------
    tables : list of two float32 arrays [V, dim]
        Centers and contexts; on ranks those that all have in common.
    sent, at_end : float
        Bytes of this rank for each of its words: between intervals, and in the last exchange, of all rows of both
        tables. (`train_blocks` exchanges all centers, which are the vectors; `merge_contexts` the other table.)
    """
    kept, noted, ended = [], [], []
    between = merge if factors is None else noting(merge, factors)

    def note():
        noted.append(bytes_sent())

    def start(tables, common, steps):
        kept.extend([tables, common])
        note()
        return 0

    @contextmanager
    def watch(part, steps=0):
        if part == "last exchange":
            ended.append(True)
            note()
        yield

    def merge_now(total, squares):
        return merge(total, squares) if ended else between(total, squares)

    train_blocks(text, vocab, merge_changes=merge_now, start=start, watch=watch, hvd=hvd, **options)
    if hvd:
        merge_contexts(*kept, merge, hvd)
    note()
    words = options["epochs"] * len(text)
    sent, at_end = np.diff(noted) / words
    return kept[1], sent, at_end


def merge_contexts(tables, common, merge, hvd):
    """Exchange what has not travelled yet of all rows of the second table; its `common` is changed in place."""
    change = tf.constant(tables[1] - common[1])
    squares = tf.reduce_sum(change**2, axis=1, keepdims=True)
    message = hvd.allreduce(tf.concat([change, squares], axis=1), op=hvd.Sum)
    common[1] += merge(message[:, :-1], message[:, -1:]).numpy()


def noting(merge, factors):
    """The same merge, which notes what it does to the sum of changes.

    Parameters
    ----------
    merge : function
    factors : list
        It gets, of each message, by what the sum is multiplied: the median of its hot rows that have changed.
    """

    def noted(total, squares):
        merged = merge(total, squares)
        after, before = [np.linalg.norm(rows[..., :HOT, :], axis=-1) for rows in (merged, total)]
        changed = before > 0
        if changed.any():
            factors.append(float(np.median(after[changed] / before[changed])))
        return merged

    return noted


def train_on_rank(parts, vocab, merge, **options):
    """Train this rank's part of a text; only rank 0 returns something.

    Returns
    -------
    tables : list of two float32 arrays [V, dim]
    sent, at_end : float
        Bytes that rank 0 has sent for each of its words, see `train_text`.
    factor : float
        The median of the factors that `noting` notes.
    """
    import horovod.tensorflow as hvd

    factors = []
    text = parts[hvd.rank()]
    tables, sent, at_end = train_text(text, vocab, hvd=hvd, merge=merge, factors=factors, **options)
    if hvd.rank() > 0:
        return None
    return tables, sent, at_end, median(factors or [np.nan])


# ---- What came out


@dataclass(frozen=True)
class Outcome:
    """Of one training what `Runs` keeps.

    Attributes
    ----------
    loss : float
        The mean of a held-out pair, in nats.
    sent, at_end : float
        Bytes that a rank sent for each of its words, between intervals and in the last exchange.
    factor : float
        By what a merge multiplied the sum of changes, see `noting`.
    """

    loss: float
    sent: float
    at_end: float
    factor: float


class Runs:
    """Trains one text in different ways, and keeps what came out.

    Parameters
    ----------
    ids : int array [n]
        The text.
    held_out : int array
        Words set aside.
    vocab : Vocab
    epochs : int

    Attributes
    ----------
    found : dict
        Of each name the outcomes, one for each seed.
    settings : dict
        Of each name its merge and its learning rate at the start, as str.
    """

    def __init__(self, ids, held_out, vocab, epochs=3):
        self.ids, self.vocab, self.epochs = ids, vocab, epochs
        self.found, self.settings = {}, {}
        self._test = self._cut(held_out)

    def _cut(self, held_out):
        """Blocks of the words set aside, one in each row, with random words that stay the same."""
        rng = np.random.default_rng(99)
        noise = noise_table(self.vocab, rng, BLOCKS)
        keep = self.vocab.keep_probability(1e-4).astype(np.float32)
        padded = pad_text(subsample(held_out[held_out > 0], keep, rng), BLOCKS)
        blocks = cut_blocks(padded, 0, 1, noise, rng, BLOCKS)
        return blocks.reshape(-1, blocks.shape[-1])

    def held_out_loss(self, tables):
        """The mean loss of a held-out pair with its random words, in nats."""
        labels, weights = pair_weights(BLOCKS)
        centers = self._test[:, BLOCKS.window : BLOCKS.window + BLOCKS.tokens]
        known = (centers > 0)[:, :, np.newaxis].astype(np.float32)
        return float(block_loss(tables[0][centers], tables[1][self._test], labels, weights * known))

    def _keep(self, name, tables, *rest):
        self.found.setdefault(name, []).append(Outcome(self.held_out_loss(tables), *rest))

    def _begin(self, name, merge, lr):
        """Forget what this name had, and note how it is trained now."""
        self.found.pop(name, None)
        self.settings[name] = merge, f"{lr:g}"

    def alone(self, name, lr, seeds=(0,), text=None, **options):
        """Train in this process, once with each seed: a text, or all of it. options: of `train_blocks`."""
        text = self.ids if text is None else text
        self._begin(name, "", lr)
        for seed in seeds:
            tables, *_ = train_text(text, self.vocab, epochs=self.epochs, lr=lr, seed=seed, **options)
            self._keep(name, tables, 0.0, 0.0, 1.0)

    def on(self, ranks, name, blocks, lr, merge, seeds=(0,), **options):
        """Train on ranks, each an equal part of the text, once with each seed. options: of `train_text`."""
        self._begin(name, getattr(merge, "__name__", ""), lr)
        parts = interleave(self.ids, ranks.size)
        options |= {"blocks": blocks, "lr": lr, "epochs": self.epochs}
        for seed in seeds:
            of_rank_0, *_ = ranks.run(train_on_rank, parts, self.vocab, merge, seed=seed, **options)
            self._keep(name, *of_rank_0)

    def losses(self, name):
        """The held-out loss of each seed."""
        return [outcome.loss for outcome in self.found[name]]

    def above(self, name, than="1 rank"):
        """How much higher the loss is than that of another run with the same seed, for each seed that both have."""
        pairs = zip(self.losses(name), self.losses(than), strict=False)
        return [loss - other for loss, other in pairs]

    def each_seed(self, name, than="1 rank"):
        """`above` as it stands in a table: "0.14, 0.15"."""
        return ", ".join(f"{more:z.2f}" for more in self.above(name, than))

    # the rest is of the first seed, which all runs have, but for `table`

    def more(self, name, than="1 rank"):
        """How much higher the loss is than that of another run."""
        return self.above(name, than)[0]

    def sent(self, name):
        """Bytes that a rank sent between intervals for each of its words; nan where they are not counted."""
        return self.found[name][0].sent

    def at_end(self, name):
        """The same in the last exchange, of all rows."""
        return self.found[name][0].at_end

    def factor(self, name):
        """By what the sum of changes was multiplied, see `noting`: 1 is the sum, 1 / ranks the mean."""
        return self.found[name][0].factor

    def table(self, *names):
        """A row for each name: merge, rate, how much its loss is above one rank's, of each seed; bytes a word."""
        from helpers.plots import table  # here: ranks do without matplotlib

        columns = ["run", "merge", "rate", "loss above 1 rank's", "bytes a word"]
        body = [[name, *self.settings[name], self.each_seed(name), f"{self.sent(name):.0f}"] for name in names]
        return table(columns, body)


# ---- Figures


def draw_plans(plans, words, title, every=None):
    """Draw when the changes of a rank add up and when they travel, in one epoch, two lanes for each plan.

    Parameters
    ----------
    plans : dict of str to Blocks
        The last one has the captions.
    words : int
        Of the rank in an epoch.
    title : str
    every : dict of str to int, optional
        Of a plan, in every how many-th interval ranks exchange; the others exchange in each.
    """
    import matplotlib.pyplot as plt  # here: ranks do without it

    from helpers.plots import COLORS

    figure, axis = plt.subplots(figsize=(4.7, 1.3 + 0.65 * len(plans)))
    for lane, (name, blocks) in enumerate(plans.items()):
        late = words / count_intervals(words, blocks)  # words that pass while changes travel
        apart = (every or {}).get(name, 1) * late  # words between two exchanges
        for start in np.arange(0, words, apart):
            axis.barh(lane - 0.2, apart, 0.36, start, color=COLORS[0], ec="white")
            axis.barh(lane + 0.2, late, 0.36, start + apart, color=COLORS[1], ec="white")
    last = len(plans) - 1
    axis.text(words / 4, last - 0.2, "changes add up", color="white", ha="center", va="center")
    axis.text(3 * words / 4, last + 0.2, "they travel", color="white", ha="center", va="center")
    ticks = np.linspace(0, words, 6)
    axis.set(xlim=(0, words), xticks=ticks, xticklabels=[f"{tick / 1_000:.0f}" for tick in ticks])
    axis.set(yticks=range(len(plans)), yticklabels=plans, xlabel="thousand words that a rank has trained")
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_title(title)
    plt.show()


def draw_price(runs, groups, without, title):
    """Draw what runs lose against the bytes that they send, a colour for each merge and rate, a dot for each seed.

    Parameters
    ----------
    runs : Runs
    groups : dict of str to list of str
        {what the legend says: names of runs}. Three groups: the names, without " mean" and " 0.06", stand to the right
        of the dots, to the left, and to the right below. What loses less than LEAST stands there. Where bytes are not
        counted (on a Mac) the runs of a group stand side by side.
    without : str
        Name of a run that exchanges nothing: a dashed line.
    title : str
    """
    import matplotlib.pyplot as plt  # here: ranks do without it

    from helpers.plots import COLORS

    figure, axis = plt.subplots(figsize=(4.7, 4.6))
    axis.set(xscale="log", yscale="log", xlim=(3, 2_000), ylim=(0.04, 0.9))
    sides = [((7, 3), "left"), ((-7, -2), "right"), ((7, -7), "left")]
    for (label, names), color, (offset, side) in zip(groups.items(), COLORS, sides, strict=False):
        places = [runs.sent(name) for name in names]
        counted = not np.isnan(places).any()
        if not counted:
            places = [10 * 4**place for place in range(len(names))]
        for name, place in zip(names, places, strict=True):
            losses = np.maximum(runs.above(name), LEAST)
            axis.plot([place] * len(losses), losses, "o", color=color, ms=6, label=label)
            label = None  # in the legend once
            axis.annotate(
                name.removesuffix(" mean").removesuffix(" 0.06"), (place, np.mean(losses)), offset, color=color,
                fontsize=9, ha=side, textcoords="offset points", va="center",
            )  # fmt: skip
    level = max(runs.more(without), LEAST)
    axis.axhline(level, color="black", ls="--", lw=1)
    axis.annotate(f"{without}: sends nothing", (2_000, level), (-3, 4), ha="right", va="bottom",
                  fontsize=9, textcoords="offset points")  # fmt: skip
    ticks = [10, 30, 100, 300] if counted else []
    axis.set(xticks=ticks, xticklabels=ticks)
    axis.set(yticks=[0.05, 0.1, 0.2, 0.4, 0.8], yticklabels=[0.05, 0.1, 0.2, 0.4, 0.8])
    axis.minorticks_off()
    axis.set_xlabel("bytes a word" if counted else "bytes are not counted here")
    axis.set_ylabel("held-out loss above one rank's")
    axis.set_title(title)
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    plt.show()


def draw_needs(counts, needed, links, title):
    """Draw how many Mbit/s a rank sends against the number of ranks, and links as dashed lines.

    Parameters
    ----------
    counts : list of int
        Ranks.
    needed : list of float
        Mbit/s.
    links : list of int
        Mbit/s.
    title : str
    """
    import matplotlib.pyplot as plt  # here: ranks do without it

    from helpers.plots import COLORS

    figure, axis = plt.subplots(figsize=(4.7, 3.4))
    axis.plot(counts, needed, "o-", color=COLORS[0])
    for link, color in zip(links, COLORS[1:]):
        axis.axhline(link, color=color, ls="--")
        axis.text(counts[0], 1.2 * link, f"{link:,} Mbit/s", color=color)
    axis.set(xscale="log", yscale="log", xticks=counts, xticklabels=counts)
    axis.set(ylim=(links[0] / 2, 3 * links[-1]), xlabel="ranks", ylabel="Mbit/s that a rank sends")
    axis.set_title(title)
    axis.minorticks_off()
    plt.show()
