"""Of lesson 12: what a rank does and sends in a step of each strategy, and how fast that lets ranks be.

A plan is a function plan(pairs, ids, vocab, size) -> pairs, messages, bytes: of `size` ranks that share the text `ids`,
what one has in a step of `pairs` pairs. The messages are the tensors that the code hands over, six where rows of
gradients travel; inside of a tf.function these are five tensors in about three messages, as lesson 12 counts.
"""

from functools import partial

import numpy as np

from helpers.exchange.cost_model import ring_bytes
from helpers.exchange.merging import due_rows
from helpers.word2vec.block_trainer import count_intervals
from lesson_parts.strategies import DIM, SAMPLED, STRATEGIES, pairs_of

ROW = 4 * DIM  # bytes


# ---- What is in a message


def kept_shares(vocab):
    """Compute how likely a word of the thinned text is each row: float [V]."""
    kept = vocab.counts * vocab.keep_probability()
    return kept / kept.sum()


def distinct(n, share, drawn=0):
    """Compute how many different rows a batch is expected to touch.

    Parameters
    ----------
    n : int
        Words.
    share : float array [V]
        How likely a word is each row.
    drawn : int
        Log-uniform samples beside the words.

    Returns
    -------
    float
    """
    rank = np.arange(1, len(share) + 1)
    sampled = np.log1p(1 / rank) / np.log(len(share) + 1)
    return float(np.sum(1 - (1 - share) ** n * (1 - sampled) ** drawn))


def row_bytes(centers, contexts):
    """Compute the bytes of so many rows of centers, and of contexts with their biases.

    With each row travels its number: int32 of centers, int64 of contexts and of biases.
    """
    return centers * (ROW + 4) + contexts * (ROW + 8 + 4 + 8)


def rows_due(vocab):
    """Compute how many rows of a table `due_rows` names for an exchange, in the mean."""
    return np.mean([len(due_rows(step, len(vocab))) for step in range(64)])


# ---- Plans


def rows_of_all_pairs(pairs, ids, vocab, size):
    """Each pair's rows are gathered, also those that come several times."""
    return pairs, 6, (size - 1) * row_bytes(pairs, pairs + SAMPLED)


def different_rows(pairs, ids, vocab, size):
    """Each row of a batch is gathered once."""
    share = kept_shares(vocab)
    rows = distinct(pairs, share), distinct(pairs, share, SAMPLED)
    return pairs, 6, (size - 1) * row_bytes(*rows)


def whole_tables(pairs, ids, vocab, size, messages):
    """All rows of all tables go round the ring."""
    return pairs, messages, ring_bytes(size, len(vocab) * (2 * ROW + 4))


def rows_in_turn(pairs, ids, vocab, size):
    """The rows that are due go round the ring, of all tables side by side."""
    return pairs, 1, ring_bytes(size, rows_due(vocab) * (2 * ROW + 4))


def intervals_of_blocks(pairs, ids, vocab, size):
    """A step is an interval; it sends also a share of the centers' rows that travel after the last one."""
    intervals = count_intervals(-(-len(ids) // size))
    rows = 2 * rows_due(vocab) + len(vocab) / intervals
    return pairs_of(ids, vocab) / size / intervals, 1, ring_bytes(size, rows * (ROW + 4))


PLANS = {
    "canonical": rows_of_all_pairs,
    "bigger batch": rows_of_all_pairs,
    "dense": partial(whole_tables, messages=3),
    "deduplicated rows": different_rows,
    "local SGD": partial(whole_tables, messages=1),
    "hot and cold": rows_in_turn,
    "overlap": rows_in_turn,
    "blocks": intervals_of_blocks,
}


def planned(name, ids, vocab, size=2):
    """Compute what a rank does and sends in a step of a strategy.

    Parameters
    ----------
    name : str
        Of STRATEGIES.
    ids : int array [n]
        The whole text.
    vocab : Vocab
    size : int
        Ranks that share the text.

    Returns
    -------
    pairs, messages, bytes : float
    """
    return PLANS[name](STRATEGIES[name].batch, ids, vocab, size)


# ---- How fast that lets them be


def predicted(name, ids, vocab, disabled, network, size=2, plan=planned):
    """Predict the pairs/s of all ranks.

    A step takes compute + messages x latency + bytes / bandwidth; where computing and communicating
    overlap, the longer of the two.

    Parameters
    ----------
    name, ids, vocab, size
        See `planned`.
    disabled : float
        Pairs/s of all ranks with communication disabled.
    network : tuple of float
        Latency in s and bandwidth in bytes/s, see `helpers.exchange.latency_and_bandwidth`.
    plan : function
        In place of `planned`.

    Returns
    -------
    float
    """
    pairs, messages, sent = plan(name, ids, vocab, size)
    compute = size * pairs / disabled
    communicate = messages * network[0] + sent / network[1]
    combine = max if name in ("overlap", "blocks") else sum
    return size * pairs / combine([compute, communicate])
