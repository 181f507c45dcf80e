"""The runs of lesson 14: one text, trained by one process or by ranks in different ways, and what came out."""

from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import numpy as np
import tensorflow as tf

from helpers.exchange import bytes_sent
from helpers.text import subsample
from helpers.word2vec import (
    block_loss,
    cut_blocks,
    interleave,
    merge_changes,
    noise_table,
    pad_text,
    pair_weights,
    train_blocks,
)
from helpers.word2vec.blocks import BLOCKS

HOT = 250  # of a message so many rows, the first: of them the factor is noted
NO_STEPS = np.empty(0, np.float32)


# ---- One training


def train_text(text, vocab, *, hvd=None, merge=merge_changes, last=None, factors=None, steps=None, **options):
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
    last : function, optional
        In place of `merge` in the last exchange, of all rows.
    factors, steps : list, optional
        They are extended by what `noting` notes of the exchanges between intervals, and not of the last one.
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
    between = merge if factors is None else noting(merge, factors, [] if steps is None else steps)
    at_end = last or merge

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
        return at_end(total, squares) if ended else between(total, squares)

    train_blocks(text, vocab, merge_changes=merge_now, start=start, watch=watch, hvd=hvd, **options)
    if hvd:
        merge_contexts(*kept, at_end, hvd)
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


def noting(merge, factors, steps):
    """The same merge, which notes what it does to the sum of changes.

    Parameters
    ----------
    merge : function
    factors : list
        It gets, of each message, by what the sum is multiplied: the median of its hot rows.
    steps : list
        It gets, of each message, how long the merged changes are: a float32 array, without rows that have not changed.
    """

    def noted(total, squares):
        merged = merge(total, squares)
        after, before = [np.linalg.norm(rows, axis=-1) for rows in (merged, total)]
        changed = before > 0
        steps.append(after[changed].astype(np.float32))
        hot = changed[..., :HOT]
        if hot.any():
            factors.append(float(np.median(after[..., :HOT][hot] / before[..., :HOT][hot])))
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
    steps : float32 array [n]
        The lengths that `noting` notes, of all messages.
    """
    import horovod.tensorflow as hvd

    factors, steps = [], []
    text = parts[hvd.rank()]
    tables, sent, at_end = train_text(text, vocab, hvd=hvd, merge=merge, factors=factors, steps=steps, **options)
    if hvd.rank() > 0:
        return None
    return tables, sent, at_end, median(factors or [np.nan]), np.concatenate([NO_STEPS, *steps])


# ---- What came out


@dataclass(frozen=True)
class Outcome:
    """Of one training what `Runs` keeps.

    Attributes
    ----------
    loss : float
        The mean of a held-out pair, in nats.
    tables : list of two float32 arrays [V, dim], or None
        Of a first seed only: of the others nobody asks for them.
    sent, at_end : float
        Bytes that a rank sent for each of its words, between intervals and in the last exchange.
    factor : float
        By what a merge multiplied the sum of changes, see `noting`.
    steps : float32 array [n]
        How long merged changes were, see `noting`.
    """

    loss: float
    tables: list | None
    sent: float
    at_end: float
    factor: float
    steps: np.ndarray


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
        Pairs of WordSim-353 that the vocabulary has, after a call of `wordsim`.
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

    def held_out_loss(self, tables, factor=1.0):
        """The mean loss of a held-out pair with its random words, in nats, with all centers times `factor`."""
        labels, weights = pair_weights(BLOCKS)
        centers = self._test[:, BLOCKS.window : BLOCKS.window + BLOCKS.tokens]
        known = (centers > 0)[:, :, np.newaxis].astype(np.float32)
        return float(block_loss(factor * tables[0][centers], tables[1][self._test], labels, weights * known))

    def _keep(self, name, tables, *rest):
        loss = self.held_out_loss(tables)
        first = name not in self.found
        self.found.setdefault(name, []).append(Outcome(loss, tables if first else None, *rest))

    def alone(self, name, seeds=(0,), **options):
        """Train in this process, once with each seed. options: of `train_blocks`."""
        self.found.pop(name, None)
        for seed in seeds:
            tables, *_ = train_text(self.ids, self.vocab, epochs=self.epochs, seed=seed, **options)
            self._keep(name, tables, 0.0, 0.0, 1.0, NO_STEPS)

    def on(self, ranks, name, blocks, lr, merge, seeds=(0,), **options):
        """Train on ranks, each an equal part of the text, once with each seed. options: of `train_text`."""
        self.found.pop(name, None)
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

    def wordsim(self, name):
        """WordSim-353."""
        from helpers.word2vec import scores, to_keyed_vectors  # here: ranks do without gensim

        vectors = self.found[name][0].tables[0]
        score = scores(to_keyed_vectors(vectors[1:], self.vocab.words[1:]))
        self.covered = round(353 * score["wordsim353_coverage"])
        return score["wordsim353"]

    def shortened(self, name):
        """Multiply all centers by 0.9, 0.8 and so on, as long as the loss falls: the lowest loss, and its factor."""
        tables, loss, factor = self.found[name][0].tables, self.losses(name)[0], 1.0
        while True:
            shorter = round(factor - 0.1, 1)
            found = self.held_out_loss(tables, shorter)
            if not found < loss:
                return loss, factor
            loss, factor = found, shorter

    def factor(self, name):
        """By what the sum of changes was multiplied, see `noting`: 1 is the sum, 1 / ranks the mean."""
        return self.found[name][0].factor

    def steps(self, name):
        """How long each merged change of a row was, before the last exchange: float32 [n]."""
        return self.found[name][0].steps

    def rows(self, name):
        """How long the rows of both tables are at the end: float32 [2, V]."""
        return np.linalg.norm(self.found[name][0].tables, axis=-1)

    def table(self, *names):
        """A row for each name: held-out loss and how much above one rank's, of each seed; bytes a word."""
        from helpers.plots import table  # here: ranks do without matplotlib

        rows = []
        for name in names:
            losses = ", ".join(f"{loss:.3f}" for loss in self.losses(name))
            rows.append([name, losses, self.each_seed(name), f"{self.sent(name):.0f}"])
        return table(["run", "held-out loss", "above 1 rank", "bytes a word"], rows)
