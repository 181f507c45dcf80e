"""Word2vec on parameter servers: tables, data for each worker, plain steps, and k steps for one pull and one push."""

import tensorflow as tf

from helpers.cluster.sharded_tables import add, gradients, lookup, make_table, sgd
from helpers.text.skipgram import shard
from helpers.word2vec.model import frequency_biases
from helpers.word2vec.pair_dataset import pair_dataset


def new_tables(strategy, vocab, dim, negatives=64):
    """Make the three tables of a model: embeddings, weights, and biases that start from the frequencies.

    Parameters
    ----------
    strategy : tf.distribute.Strategy
        On whose servers, or that of this process alone.
    vocab : Vocab
    dim : int
        Numbers in a row.
    negatives : int
        Of a batch; the biases depend on it.

    Returns
    -------
    list of tables
        [rows, dim], [rows, dim] and [rows], float32.
    """
    rows, small = len(vocab), 0.5 / dim
    embeddings = make_table(strategy, (rows, dim), -small, small)
    weights = make_table(strategy, (rows, dim))
    biases = make_table(strategy, (rows,))
    start = frequency_biases("sgns", vocab.counts, negatives)
    add(biases, tf.range(rows), start)
    return [embeddings, weights, biases]


def noise(n, vocab):
    """Draw n ids, int32 [n], with word2vec's probabilities (counts to the power 0.75)."""
    counts = [float(count) for count in vocab.counts]
    drawn = tf.random.fixed_unigram_candidate_sampler(
        [[0]], 1, n, unique=False, range_max=len(vocab), distortion=0.75, unigrams=counts
    )
    return tf.cast(drawn.sampled_candidates, tf.int32)


def negative_sampling(rows, others, biases):
    """The mean loss of n pairs.

    Parameters
    ----------
    rows : tf.Tensor
        Of the centers, [n, dim].
    others, biases : tf.Tensor
        Of the n contexts, then of the negatives that serve all pairs: [n + negatives, dim], [n + negatives].
    """
    n = tf.shape(rows)[0]
    true = tf.reduce_sum(rows * others[:n], axis=1) + biases[:n]
    sampled = tf.matmul(rows, others[n:], transpose_b=True) + biases[n:]
    losses = tf.reduce_sum(tf.nn.softplus(sampled), axis=1)
    return tf.reduce_mean(tf.nn.softplus(-true) + losses)


def plain_step(tables, vocab, lr, negatives=64):
    """Make a step that pulls, computes and pushes: step(centers, contexts) returns the mean loss."""

    def step(centers, contexts):
        others = tf.concat([contexts, noise(negatives, vocab)], axis=0)
        with tf.GradientTape() as tape:
            rows = map(lookup, tables, [centers, others, others])
            loss = negative_sampling(*rows)
        for table, found in zip(tables, gradients(tape, loss, tables)):
            sgd(table, found, lr)
        return loss

    return step


def own_pairs(cluster, ids, size, window=5):
    """Pairs for each worker from its own part of a text.

    Parameters
    ----------
    cluster : PSCluster
        Whose workers.
    ids : int array [n]
        The text, of which worker i reads the i-th part, again and again.
    size : int
        Pairs of a batch.
    window : int
        Words to each side, at most.

    Returns
    -------
    iterator
        To be handed to what is scheduled.
    """
    workers = len(cluster.spec["worker"])
    number = tf.distribute.coordinator.experimental_get_current_worker_index

    def make():
        parts = []
        for part in range(workers):
            own = shard(ids, part, workers)
            parts.append(pair_dataset(own, size, window, seed=part).repeat())
        me = tf.data.Dataset.from_tensors(number()).repeat()
        return tf.data.Dataset.choose_from_datasets(parts, me)

    return iter(cluster.coordinator.create_per_worker_dataset(make))


def local_steps(tables, ids, loss, lr):
    """Take k steps on copies of the rows that they need, with one pull before and one push after.

    Parameters
    ----------
    tables : list
        From `make_table`.
    ids : list of tf.Tensor
        For each table the rows that each step needs, int [k, n].
    loss : callable
        Takes the rows of each table, returns a scalar.
    lr : float

    Returns
    -------
    tf.Tensor
        The mean loss of the k steps.
    """
    different, places = [], []
    for wanted in ids:
        rows, place = tf.unique(tf.reshape(wanted, [-1]))
        different.append(rows)
        places.append(tf.reshape(place, tf.shape(wanted)))
    pulled = [tf.nn.embedding_lookup(*each) for each in zip(tables, different)]
    copies, total = list(pulled), 0.0
    k = tf.shape(places[0])[0]
    for step in tf.range(k):
        current = [place[step] for place in places]
        rows = list(map(tf.gather, copies, current))
        with tf.GradientTape() as tape:
            tape.watch(rows)
            value = loss(*rows)
        found = tape.gradient(value, rows)
        copies = [
            tf.tensor_scatter_nd_sub(copy, place[:, None], lr * gradient)
            for copy, place, gradient in zip(copies, current, found)
        ]
        total += value
    for table, rows, new, old in zip(tables, different, copies, pulled):
        add(table, rows, new - old)
    return total / tf.cast(k, total.dtype)


def local_word2vec(tables, vocab, lr, k, negatives=64):
    """Make a step of k local ones: step(centers, contexts) cuts them into k batches and returns the mean loss."""

    def step(centers, contexts):
        drawn = tf.reshape(noise(k * negatives, vocab), [k, negatives])
        others = tf.concat([tf.reshape(contexts, [k, -1]), drawn], axis=1)
        wanted = [tf.reshape(centers, [k, -1]), others, others]
        return local_steps(tables, wanted, negative_sampling, lr)

    return step
