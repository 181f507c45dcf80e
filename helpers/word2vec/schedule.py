"""How often ranks exchange which rows, and at which rate they learn: a rule that was chosen by runs."""

from dataclasses import replace

import tensorflow as tf

from helpers.exchange.merging import merge_changes
from helpers.word2vec.blocks import BLOCKS

LR = 0.045  # of one process, at the start
LOST = 1 / 3  # L of the model in `schedule`: sets the interval and the rate
HITS = 12  # of the rarest row that travels in each exchange, within WORDS
WORDS = 125_000  # s of the model: in which the common progress of a row is as long as its noise
LONGEST = 1.0  # change of a row in one exchange


def schedule(ranks, vocab, blocks=BLOCKS, lr=LR):
    """Choose interval, hot rows and learning rate by the number of ranks and the words of a text.

    The reason to use the rule is what runs with it have lost, little. A model gave it its form, fewer
    words between two exchanges the more ranks there are, and is no reason for it: lesson 14 measures
    that it fits badly. The factor of a merge should fall with the interval, and it stays.

    The model: between two exchanges a rank trains w words. Its change of a row is then about as w
    in the direction that all ranks have in common, and as sqrt(w s) in directions of its own,
    which differ from rank to rank: s is the number of words after which both are equal.
    `merge_changes` multiplies the sum of R such changes by the sum of their squared lengths over
    the squared length of the sum. Of the common progress of all ranks, R w, that leaves (s + w) /
    (s + R w), and the share

        L = (R - 1) w / (s + R w)

    is lost. The more ranks, the more is lost, at the same w. To lose no more than L they exchange
    after

        w = s L / (R - 1 - R L)   words each, with L = 1/3:   w = s / (2 R - 3).

    So 2 ranks train s between two exchanges, 4 train s / 5, 8 train s / 13, 16 train s / 29.
    The rate is that of one process, divided by 1 - L (R - 1) / R, a form that was chosen by runs:
    nothing derives it. A row is hit as often as its word comes: rows that are hit at least HITS times
    in WORDS words travel each time, the others every second time, every fourth time ..., as
    `due_rows` says. So a text of few words, each of which comes often, gets as many hot rows as it has
    such words.

    LOST (L), WORDS and HITS were chosen by many runs on two texts with 8 and 16 ranks.

    Parameters
    ----------
    ranks : int
    vocab : Vocab
        Of the whole text.
    blocks : Blocks
        Of one process. Its interval is the most that ranks get, its hot rows are the least.
    lr : float
        Of one process.

    Returns
    -------
    blocks : Blocks
        With the interval and the hot rows of so many ranks. For 1 rank as given.
    lr : float
        The learning rate at the start.

    Raises
    ------
    ValueError
        For fewer ranks than 1.
    """
    if ranks < 1:
        raise ValueError(f"ranks={ranks}, but at least 1 is needed")
    if ranks == 1:
        return blocks, lr
    interval = round(WORDS * LOST / (ranks - 1 - ranks * LOST))
    share = vocab.counts[1:] / vocab.counts[1:].sum()
    hot = int((share * WORDS >= HITS).sum())
    blocks = replace(blocks, interval=min(interval, blocks.interval), hot=max(hot, blocks.hot))
    return blocks, lr / (1 - LOST * (ranks - 1) / ranks)


def bounded_changes(total, squares):
    """Merge changes as `merge_changes` does, but make no row's change longer than LONGEST.

    Words that stand in the same few sentences again and again, as in generated pages, want long rows. Changes that
    ranks make without knowing of each other drive them far beyond the length of 2 to 4 that other rows have.

    Parameters
    ----------
    total : float32 tensor [..., dim]
    squares : float32 tensor [..., 1]

    Returns
    -------
    float32 tensor [..., dim]
    """
    return tf.clip_by_norm(merge_changes(total, squares), LONGEST, axes=-1)
