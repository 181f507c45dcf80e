"""Words and their ids: the most frequent words get an id each, all the others share id 0, "UNK"."""

from collections import Counter
from itertools import repeat

import numpy as np

UNK = "UNK"
USUAL_SIZE = 50_000


class Vocab:
    """Words and their ids, sorted by falling frequency; words that count the same, by the alphabet.

    "UNK" (upper case) in a corpus is a word that somebody replaced already: it gets id 0 and counts
    there.

    Attributes
    ----------
    words : list of str, length V
        `words[0]` is "UNK", the unknown word, however rare or frequent it is.
    counts : np.int64 [V]
        `counts[0]` is how many words of the corpus have no id of their own.
    index : dict of str to int
        The inverse of `words`.
    """

    def __init__(self, words, counts):
        self.words = list(words)
        self.counts = np.array(counts, np.int64)
        self.index = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def build(cls, words, size=None):
        """Make the vocabulary of a text: "UNK" and the `size - 1` most frequent words.

        Parameters
        ----------
        words : iterable of str
        size : int, optional
            Without it 50,000, or as many as the corpus has.

        Returns
        -------
        Vocab

        Raises
        ------
        ValueError
            For an empty corpus, for `size` < 2, and for a `size` that the corpus cannot fill.
        """
        return cls.from_counts(Counter(words), size)

    @classmethod
    def from_counts(cls, counter, size=None):
        """Make the same from a Counter, for instance the sum of the Counters of several engines.

        Parameters
        ----------
        counter : dict of str to int
        size : int, optional
            See `build`.

        Returns
        -------
        Vocab
        """
        known = +Counter(counter)
        unknown = known.pop(UNK, 0)
        if size is None:
            size = min(USUAL_SIZE, len(known) + 1)
        _check_size(len(known), size)
        kept = sorted(known, key=lambda word: (-known[word], word))[: size - 1]
        counts = [known[word] for word in kept]
        return cls([UNK, *kept], [unknown + known.total() - sum(counts), *counts])

    def __len__(self):
        """Return V."""
        return len(self.words)

    def __repr__(self):
        """Describe it in a line."""
        return f"Vocab({len(self):,} words, {self.counts.sum():,} counted, {self.counts[0]:,} of them UNK)"

    def encode(self, words):
        """Return the ids of n words (an iterable of str): np.int32 [n].

        A word without an id of its own becomes 0.
        """
        return np.fromiter(map(self.index.get, words, repeat(0)), np.int32)

    def decode(self, ids):
        """Return the words of n ids: list of str. ValueError for an id outside 0..V-1."""
        ids = np.asarray(ids, np.int64)
        wrong = ids[(ids < 0) | (ids >= len(self))]
        if wrong.size:
            raise ValueError(f"id {wrong[0]} is outside this vocabulary: its ids are 0 to {len(self) - 1:,}")
        return [self.words[i] for i in ids.tolist()]

    def keep_probability(self, threshold=1e-4):
        """Compute how likely subsampling keeps one occurrence of each word.

        With f the word's share of the corpus and t the threshold, this is
        min(1, sqrt(t / f) + t / f), the formula of the program word2vec.c. The paper (Mikolov et
        al., "Distributed Representations of Words and Phrases and their Compositionality", 2013)
        has another one: it keeps with probability sqrt(t / f), so it drops more. UNK is a row like
        any other.

        Parameters
        ----------
        threshold : float

        Returns
        -------
        np.float64 [V]
            Between 0 and 1.

        Raises
        ------
        ValueError
            For a `threshold` that is not above 0.
        """
        if threshold <= 0:
            raise ValueError(f"threshold={threshold}, but it must be above 0 (1e-3 to 1e-5 is usual)")
        share = threshold * self.counts.sum() / np.maximum(self.counts, 1)
        return np.minimum(1.0, np.sqrt(share) + share)

    def noise(self, power=0.75):
        """Return the distribution that negative examples are drawn from: float64 [V], sums to 1.

        It is proportional to counts ** power.
        """
        weights = self.counts**power
        return weights / weights.sum()


def _check_size(distinct, size):
    if not distinct:
        raise ValueError("the corpus is empty: it has 0 words to build a vocabulary from")
    if size < 2:
        raise ValueError(f"size={size:,}, but the smallest vocabulary has 2 rows: UNK and one word")
    if size > distinct + 1:
        has = f"the corpus has only {distinct:,} distinct words plus UNK"
        raise ValueError(f"size={size:,}, but {has}: ask for at most {distinct + 1:,}")
