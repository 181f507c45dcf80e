"""The runs of lesson 14: one text, trained by one process or by ranks in different ways, and what came out."""

import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import mean, median

import numpy as np
import tensorflow as tf

from helpers.exchange import bytes_sent
from helpers.plots import table
from helpers.text import subsample
from helpers.word2vec import (
    Blocks,
    block_loss,
    cut_blocks,
    interleave,
    merge_changes,
    noise_table,
    pad_text,
    pair_weights,
    scores,
    to_keyed_vectors,
    train_blocks,
)
from helpers.word2vec.blocks import BLOCKS

HOT = 250  # of a message so many rows, the first: of them the factor is noted


# ---- One training


def train_text(text, vocab, *, hvd=None, merge=merge_changes, begin=(), factors=None, **options):
    """Train tables on a text, in one process or on this rank.

    Parameters
    ----------
    text : int array
        On ranks what this rank reads.
    vocab : Vocab
    hvd : module, optional
        horovod.tensorflow, on ranks.
    merge : function
        How the changes of ranks become one, in place of `merge_changes`.
    begin : sequence of two float32 arrays [V, dim]
        Tables to begin with; by default those of `train_blocks`.
    factors : list, optional
        It is extended by what `noting` notes of the exchanges between intervals, and not of the last one.
    **options
        Of `train_blocks`.

    Returns
    -------
    tables : list of two float32 arrays [V, dim]
        Centers and contexts; on ranks those that all have in common.
    words_per_s, bytes_per_word : float
        Of this rank, with the last exchange, of all rows of both tables. (`train_blocks` exchanges all centers,
        which are the vectors; `merge_contexts` the other table.)
    """
    kept, noted, seen = [], [], []

    def note():
        noted.append((time.perf_counter(), bytes_sent()))

    def start(tables, common, steps):
        for table_, rows in zip(tables, begin):
            table_[:] = rows
        kept.extend([tables, common])
        note()
        return 0

    @contextmanager
    def watch(part, steps=0):
        if part == "last exchange" and factors is not None:
            factors.extend(seen)
        yield

    in_training = merge if factors is None else noting(merge, seen)
    train_blocks(text, vocab, merge_changes=in_training, start=start, watch=watch, hvd=hvd, **options)
    if hvd:
        merge_contexts(*kept, merge, hvd)
    note()
    words = options["epochs"] * len(text)
    seconds, sent = np.subtract(noted[1], noted[0])
    return kept[1], words / seconds, sent / words


def merge_contexts(tables, common, merge, hvd):
    """Exchange what has not travelled yet of all rows of the second table; its `common` is changed in place."""
    change = tf.constant(tables[1] - common[1])
    squares = tf.reduce_sum(change**2, axis=1, keepdims=True)
    message = hvd.allreduce(tf.concat([change, squares], axis=1), op=hvd.Sum)
    common[1] += merge(message[:, :-1], message[:, -1:]).numpy()


def noting(merge, factors):
    """The same merge, which notes by what it multiplies the sum of changes: the median of a message's hot rows."""

    def noted(total, squares):
        merged = merge(total, squares)
        lengths = [np.linalg.norm(rows[..., :HOT, :], axis=-1) for rows in (merged, total)]
        changed = lengths[1] > 0
        if changed.any():
            factors.append(float(np.median(lengths[0][changed] / lengths[1][changed])))
        return merged

    return noted


def train_on_rank(parts, vocab, merge=merge_changes, **options):
    """Train this rank's part of a text; only rank 0 returns something: tables, bytes a word, the median factor."""
    import horovod.tensorflow as hvd

    factors = []
    text = parts[hvd.rank()]
    tables, _, sent = train_text(text, vocab, hvd=hvd, merge=merge, factors=factors, **options)
    return (tables, sent, median(factors or [np.nan])) if hvd.rank() == 0 else None


def speed_on_rank(parts, vocab, alone=False, merge=merge_changes, **options):
    """Words per second of this rank; alone: rank 0 trains all parts without the others, which return nothing.

    All merges run through TensorFlow, as in `train_on_rank`: also `merge_changes`, which the trainer has compiled, too.
    """
    import horovod.tensorflow as hvd

    if not alone:
        return train_text(parts[hvd.rank()], vocab, hvd=hvd, merge=partial(merge), **options)[1]
    if hvd.rank() == 0:
        return train_text(np.concatenate(parts), vocab, **options)[1]


# ---- What came out


@dataclass(frozen=True)
class Outcome:
    """Of one training: the loss of a held-out pair in nats, WordSim-353, bytes that a rank sent for each word.

    And by what a merge multiplied the sum of changes, see `noting`.
    """

    loss: float
    wordsim: float
    sent: float
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
    covered : int
        Pairs of WordSim-353 that the vocabulary has.
    """

    def __init__(self, ids, held_out, vocab, epochs=3):
        self.ids, self.vocab, self.epochs = ids, vocab, epochs
        self.found = {}
        self.covered = 0
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

    def _keep(self, name, tables, sent, factor):
        keyed = to_keyed_vectors(tables[0][1:], self.vocab.words[1:])
        score = scores(keyed)
        self.covered = round(353 * score["wordsim353_coverage"])
        self.found.setdefault(name, []).append(Outcome(self.held_out_loss(tables), score["wordsim353"], sent, factor))

    def alone(self, name, seeds=(0,), **options):
        """Train in this process, once with each seed. options: of `train_blocks`."""
        self.found.pop(name, None)
        for seed in seeds:
            tables, *_ = train_text(self.ids, self.vocab, epochs=self.epochs, seed=seed, **options)
            self._keep(name, tables, 0.0, 1.0)

    def on(self, ranks, name, blocks, lr, seeds=(0,), **options):
        """Train on ranks, each an equal part of the text. options: of `train_text`, as `merge=...`."""
        self.found.pop(name, None)
        parts = interleave(self.ids, ranks.size)
        options |= {"blocks": blocks, "lr": lr, "epochs": self.epochs}
        for seed in seeds:
            (tables, sent, factor), *_ = ranks.run(train_on_rank, parts, self.vocab, seed=seed, **options)
            self._keep(name, tables, sent, factor)

    def losses(self, name):
        """The held-out loss of each seed."""
        return [outcome.loss for outcome in self.found[name]]

    def loss(self, name):
        """The mean held-out loss of the seeds."""
        return mean(self.losses(name))

    def factor(self, name):
        """By what the sum of changes was multiplied, the median, see `noting`: 1 is the sum, 1 / ranks the mean."""
        return median(outcome.factor for outcome in self.found[name])

    def more(self, name, than="1 rank"):
        """How much higher the loss is than that of another run: the mean over the seeds that both have."""
        pairs = zip(self.losses(name), self.losses(than), strict=False)
        return mean(loss - other for loss, other in pairs)

    def table(self, *names):
        """A row for each name: loss, what it is above one rank's, WordSim-353, bytes a word; ranges of the seeds."""
        rows = []
        for name in names:
            outcomes = self.found[name]
            wordsim = spread([outcome.wordsim for outcome in outcomes], 2)
            rows.append(
                [name, len(outcomes), spread(self.losses(name), 3), f"{self.more(name):.2f}", wordsim]
                + [f"{outcomes[0].sent:.0f}"]
            )
        head = "run", "seeds", "held-out loss", "above 1 rank", f"WordSim ({self.covered} pairs)", "bytes a word"
        return table(head, rows)

    def speeds(self, ranks, ways, turns=3):
        """Measure words per second of all ranks together, and of rank 0 alone, in turns; with the last exchange.

        Parameters
        ----------
        ranks : Ranks
        ways : dict
            Of each name the options of a training.
        turns : int

        Returns
        -------
        dict of str to list of float
            Of each way, in each turn: words/s of all ranks over those of one rank in the same turn.
        """
        parts = interleave(self.ids, ranks.size)
        times = {name: [] for name in ways}
        for _ in range(turns):
            one, *_ = ranks.run(speed_on_rank, parts, self.vocab, alone=True, epochs=self.epochs)
            for name, options in ways.items():
                of_ranks = ranks.run(speed_on_rank, parts, self.vocab, epochs=self.epochs, **options)
                times[name].append(sum(of_ranks) / one)
        return times


def spread(values, places):
    """The lowest and the highest as a text, or the one value."""
    lowest, highest = f"{min(values):.{places}f}", f"{max(values):.{places}f}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def median_and_spread(values, places=2):
    """The median, and the lowest and the highest in brackets, as a text."""
    return f"{median(values):.{places}f} ({spread(values, places)})"


# ---- Copies that train apart


def apart(text, vocab, begin, words, groups, way, seed):
    """Train two copies of the same tables apart, and compare how each has changed the centers.

    Parameters
    ----------
    text : int array [n]
        They read parts of it.
    vocab : Vocab
    begin : sequence of two float32 arrays [V, dim]
        The tables that they begin with.
    words : int
        So many does each copy train, in one go and at one rate.
    groups : sequence of int arrays
        Rows.
    way : {"from anywhere", "neighbours"}
        Each copy has every second piece of 1,000 words of `text`. It reads pieces drawn from all of them, or both
        copies read on from the same place of `text`.
    seed : int

    Returns
    -------
    array [3, groups]
        The mean cosine of a row that both have changed with the same row of the other copy, and with another row of
        the group; how many rows both have changed.
    """
    parts = interleave(text, 2)
    rng = np.random.default_rng(seed)
    if way == "neighbours":
        start = rng.integers(len(parts[0]) - words + 1)
        texts = [part[start : start + words] for part in parts]
    else:
        pieces = [part.reshape(-1, 1_000) for part in parts]
        texts = [rng.permutation(p)[: words // 1_000].ravel() for p in pieces]
    one_interval = Blocks(interval=len(text), intervals=1)
    changes = []
    for copy, read in enumerate(texts):
        tables, *_ = train_text(read, vocab, begin=begin, epochs=1, blocks=one_interval, lr=0.03, seed=2 * seed + copy)
        changes.append(tables[0] - begin[0])
    one, two = changes
    both = one.any(axis=1) & two.any(axis=1)
    kept = [group[both[group]] for group in groups]
    same = [_cosine(one[rows], two[rows]).mean() for rows in kept]
    another = [_cosine(one[rows], two[np.roll(rows, 1)]).mean() for rows in kept]
    return np.array([same, another, [len(rows) for rows in kept]])


def _cosine(one, two):
    """Of each row of `one` with the same row of `two`."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.sum(one * two, axis=1) / lengths
