"""The loop that climbs the ladder of notebook 06: it trains on any of its rungs and measures."""

import time
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from helpers.exchange.strategies import (
    PARTS,
    make_changed,
    make_deltas,
    make_fused,
    make_halved,
    make_merged,
    make_overlapped,
    make_taped,
)
from helpers.text.corpus import load_corpus
from helpers.text.skipgram import generate_batch, pair_batches, shard
from helpers.text.vocab import Vocab
from helpers.word2vec.evaluation import twins_found
from helpers.word2vec.model import make_tables
from helpers.word2vec.replicas import due_rows
from helpers.word2vec.shared_negatives import deal, train_blocks

DIM, WINDOW, BATCH = 128, 5, 2048
PAIR_RATE = 0.01  # what a pair may change, to begin with: lr is PAIR_RATE x the pairs of a step


class Strategy(NamedTuple):
    """make: see above. batch: pairs of a step (blocks: see `planned`). local: a step is PARTS small ones, then changes
    are summed.

    late: at the end, some rows still have to be exchanged. source: of the pairs, "windows" is `generate_batch`.
    """

    make: object
    batch: int = BATCH
    local: bool = False
    late: bool = False
    source: str = "pairs"


STRATEGIES = {
    "canonical": Strategy(make_taped, 96, source="windows"),
    "bigger batch": Strategy(make_taped, source="windows"),
    "pairs by NumPy": Strategy(make_taped),
    "dense": Strategy(partial(make_taped, sparse_as_dense=True)),
    "dense, float16": Strategy(make_halved),
    "merged rows": Strategy(make_merged),
    "one message": Strategy(make_fused),
    "accumulation": Strategy(partial(make_fused, parts=4), 4 * BATCH),
    "deltas": Strategy(make_deltas, PARTS * BATCH, local=True),
    "hot and cold": Strategy(partial(make_deltas, due=due_rows), PARTS * BATCH, local=True, late=True),
    "changed rows": Strategy(make_changed, PARTS * BATCH, local=True),
    "overlap": Strategy(make_overlapped, PARTS * BATCH, local=True, late=True),
    "blocks": Strategy(train_blocks, source="words"),
}


@cache
def read(corpus, size, words):
    """(ids, vocab): the first `words` words of a corpus, np.int32, and the vocabulary of its `size` most frequent."""
    text = load_corpus(corpus, progress=False).words
    vocab = Vocab.build(text, size)
    return vocab.encode(text[:words]), vocab


def batches(rung, ids, vocab, rng):
    """Batches for ever: (centers, contexts), both int32 [rung.batch], or empty where the text has no pair."""
    if rung.source == "windows" and len(ids) > 2 * WINDOW:
        while True:  # 64 to 128 pairs in the article
            size = rung.batch if rung.batch == BATCH else 2 * int(rng.integers(32, 65))
            yield generate_batch(ids, size, 2, WINDOW, rng)
    keep = vocab.keep_probability()
    while True:
        batch = None
        for batch in pair_batches(ids, rung.batch, WINDOW, rng, keep) if len(ids) * WINDOW >= rung.batch else ():
            yield batch
        if batch is None:
            yield np.empty((2, 0), np.int32)


def bytes_sent():
    """What this process has written to sockets and files (Linux; nan elsewhere)."""
    found = Path("/proc/self/io")
    return int(found.read_text().split()[3]) if found.exists() else np.nan


def train_strategy(rung, ids, vocab, hvd=None, *, pairs=None, seconds=None, seed=0, talk=True, report=None):
    """Train on the shard of this rank until all ranks together have seen `pairs` pairs, or for about `seconds`.

    talk=False: beside the other ranks, but without a word to them. Returns a dict: pairs and bytes of this rank,
    seconds, steps, loss (mean of the last tenth), vectors np.float32 [V, DIM].
    """
    rank, size = (hvd.rank(), hvd.size()) if hvd else (0, 1)
    if rung.source == "words":
        return _climb_blocks(deal(ids, size)[rank], vocab, hvd if talk else None, pairs, seed)
    tf.random.set_seed(seed)
    tables = make_tables(len(vocab), DIM, seed)
    tables[2].assign(np.log(vocab.counts / vocab.counts.sum()))  # what is known from the counts alone
    step = rung.make(tables, hvd if talk else None)
    source = batches(rung, shard(ids, rank, size), vocab, np.random.default_rng([seed, rank]))
    for _ in range(3):
        step(*next(source), 0.0)  # compiles, and fills the caches
    begin = time.perf_counter()
    for _ in range(3):
        step(*next(source), 0.0).numpy()
    wanted = pairs / (size * rung.batch) if pairs else 3 * seconds / (time.perf_counter() - begin)
    steps = max(4, int(wanted))
    if hvd:
        steps = int(hvd.broadcast(steps, 0))
    lr = PAIR_RATE * (rung.batch / PARTS if rung.local else rung.batch * (size if talk else 1))
    losses, seen, sent, begin = [], 0, bytes_sent(), time.perf_counter()
    for done in range(steps):
        centers, contexts = next(source)
        losses.append(step(centers, contexts, lr * (1 - 0.9 * done / steps)))
        seen += len(centers)
        if done % 50 == 49:
            loss = losses[-1].numpy()  # waits
            if report:
                report(done, steps, loss, size * seen / (time.perf_counter() - begin))
    loss = float(np.mean(losses[-max(1, steps // 10) :]))
    took, sent = time.perf_counter() - begin, bytes_sent() - sent
    if rung.late and talk:
        step([], [], 0.0, np.arange(len(vocab)))
    return {"pairs": seen, "seconds": took, "bytes": sent, "steps": steps, "loss": loss, "vectors": tables[0].numpy()}


def _climb_blocks(ids, vocab, hvd, pairs, seed):
    """One epoch, or as many as `pairs` asks for."""
    seen = []
    epochs = max(1, round(pairs / (pairs_of(ids, vocab) * (hvd.size() if hvd else 1)))) if pairs else 1
    sent = bytes_sent()
    vectors = train_blocks(
        ids, vocab, dim=DIM, window=WINDOW, epochs=epochs, seed=seed, hvd=hvd,
        report=lambda *values: seen.append((time.perf_counter(), *values)),
    )
    (begin, *_), (end, steps, _, loss, speed) = seen[0], seen[-1]
    sent = bytes_sent() - sent
    took = {"pairs": speed * (end - begin), "seconds": end - begin, "bytes": sent}
    return {**took, "steps": steps, "loss": float(loss), "vectors": vectors}


def pairs_of(ids, vocab):
    """How many pairs an epoch of `pair_batches` is expected to have: float."""
    return float(vocab.keep_probability()[ids].sum() * (WINDOW + 1))


# ---- What the exchange of a step should cost


# ---- How large a step may be


def train_planted(ranks, factor, warm_up=0.0, pairs=400_000, lr=4.0):
    """(loss, share of twins found) after training on the planted corpus as `ranks` ranks with 64 pairs each would.

    factor: what lr is multiplied by. warm_up: the share of the steps in which it rises from 0.
    """
    ids, vocab = read("planted", None, 200_000)
    tf.random.set_seed(0)
    tables, rng = make_tables(len(vocab), 32, 0), np.random.default_rng(0)
    tables[2].assign(np.log(vocab.counts + 1) - np.log(vocab.counts.sum()))
    source = batches(Strategy(None, 64 * ranks), ids, vocab, rng)
    step, steps, losses = make_fused(tables), pairs // (64 * ranks), []
    for done in range(steps):
        rise = min(1.0, (done + 1) / (warm_up * steps)) if warm_up else 1.0
        losses.append(step(*next(source), lr * factor * rise * (1 - 0.9 * done / steps)))
    return float(np.mean(losses[-max(1, steps // 10) :])), twins_found(tables[0].numpy(), vocab.words)
