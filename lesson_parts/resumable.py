"""Training that depends on its state alone: not on the number of ranks, nor on interruptions."""

import math
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from helpers.text import Vocab, load_corpus, subsample
from helpers.word2vec.model import frequency_biases, make_tables, merge


@dataclass(frozen=True)
class Recipe:
    """What never changes during a run."""

    vocab: int
    dim: int = 32
    batch: int = 1024  # pairs of a step, of all ranks together
    window: int = 5
    negatives: int = 64
    lr: float = 0.1


@dataclass
class Progress:
    """What each step changes, apart from the variables."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    random: dict = field(default_factory=lambda: np.random.default_rng(0).bit_generator.state)


def words_and_biases(recipe):
    """Return what a run on the corpus "docs" trains on.

    Parameters
    ----------
    recipe : Recipe

    Returns
    -------
    text : int64 array [40,000]
        Ids of the recipe.vocab most frequent words, subsampled with a fixed seed.
    held : int64 array [1,000]
        The words after them.
    biases : float32 array [recipe.vocab]
        With which NCE begins: the logarithm of each word's share of the contexts.
    """
    corpus = load_corpus("docs").words
    vocab = Vocab.build(corpus, recipe.vocab)
    ids, keep = vocab.encode(corpus), vocab.keep_probability(1e-4)
    kept = subsample(ids, keep, np.random.default_rng(0)).astype(np.int64)
    return kept[:40_000], kept[40_000:41_000], frequency_biases("nce", vocab.counts * keep)


def epoch_order(n, epoch, made={}):  # noqa: B006 - the one that is kept
    """Return the order of the n words in an epoch, int64 [n]; it is made once."""
    if (n, epoch) not in made:
        made.clear()
        made[n, epoch] = np.random.default_rng([0, epoch]).permutation(n)
    return made[n, epoch]


def next_words(progress, n, batch):
    """Return the positions of the next words of the text, at most `batch`; moves `progress`."""
    order = epoch_order(n, progress.epoch)
    words = order[progress.position : progress.position + batch]
    progress.position += len(words)
    if progress.position == n:
        progress.epoch += 1
        progress.position = 0
    return words


def part_of(n, rank, size):
    """Return the slice of n items that belongs to a rank."""
    return slice(n * rank // size, n * (rank + 1) // size)


def contexts_near(words, text, window, rng):
    """Draw a context for each position in the text.

    Parameters
    ----------
    words : int64 array [n]
        Positions in the text, which is a ring.
    text : int64 array
    window : int
        Each word draws its reach between 1 and this, then a distance between 1 and its reach, then a side.
    rng : np.random.Generator

    Returns
    -------
    int64 array [n]
        Ids.
    """
    reach = rng.integers(1, window + 1, len(words))
    distance = rng.integers(1, reach + 1)
    side = rng.choice([-1, 1], len(words))
    return text[(words + distance * side) % len(text)]


def log_uniform_ids(n, vocab, rng):
    """Draw n ids below vocab, int64 [n]: id k with probability log((k + 2) / (k + 1)) / log(vocab + 1)."""
    draws = np.exp(rng.random(n) * np.log(vocab + 1))
    return draws.astype(np.int64) - 1


def next_batch(progress, text, recipe):
    """Return what all ranks train on in a step; moves `progress`.

    Parameters
    ----------
    progress : Progress
    text : int64 array [n]
    recipe : Recipe

    Returns
    -------
    centers, contexts : int64 array [at most recipe.batch]
    negatives : int64 array [recipe.negatives]
        Drawn with the log-uniform distribution.
    """
    rng = np.random.default_rng()
    rng.bit_generator.state = progress.random
    words = next_words(progress, len(text), recipe.batch)
    contexts = contexts_near(words, text, recipe.window, rng)
    negatives = log_uniform_ids(recipe.negatives, recipe.vocab, rng)
    progress.random = rng.bit_generator.state
    progress.step += 1
    return text[words], contexts, negatives


def start_model(recipe, biases):
    """Return the tables, Adagrad, and all variables, which are the tables and Adagrad's."""
    tables = make_tables(recipe.vocab, recipe.dim, seed=0)
    tables[2].assign(biases)
    adagrad = tf.keras.optimizers.Adagrad(recipe.lr, initial_accumulator_value=1e-6)
    adagrad.build(tables)
    its_own = [variable.value for variable in adagrad.variables]
    return tables, adagrad, tables + its_own


def expected_draws(ids, recipe):
    """Return how often the log-uniform sampler draws each id among the negatives of a step."""
    ids = tf.cast(ids, tf.float32)
    share = tf.math.log((ids + 2) / (ids + 1)) / math.log(recipe.vocab + 1)
    return recipe.negatives * share


def sum_of_losses(tables, centers, contexts, negatives, recipe):
    """Return the NCE loss, summed over the pairs."""
    labels = contexts[:, tf.newaxis]
    expected = expected_draws(labels, recipe), expected_draws(negatives, recipe)
    losses = tf.nn.nce_loss(
        tables[1],
        tables[2],
        labels,
        tf.gather(tables[0], centers),
        recipe.negatives,
        recipe.vocab,
        sampled_values=(negatives, *expected),
    )
    return tf.reduce_sum(losses)


def loss_of_held_out(tables, held):
    """Return the mean NCE loss over all words held out.

    Parameters
    ----------
    tables : list of three variables
    held : int64 array [n]
        Ids. The context of each word and the 512 negatives are the same in every call.

    Returns
    -------
    float
    """
    evaluation = Recipe(vocab=tables[0].shape[0], batch=len(held), negatives=512)
    batch = next_batch(Progress(), held, evaluation)
    return float(sum_of_losses(tables, *batch, evaluation)) / len(held)


def random_state(*seed):
    """Return the state of NumPy's random numbers as they begin with one or several int."""
    return np.random.default_rng(seed).bit_generator.state


def fill_accumulators(variables, value):
    """Give all accumulators one value, a float; `variables` come from `start_model`."""
    for sums in variables[5:]:
        sums.assign(tf.fill(sums.shape, value))


def compile_update(tables, adagrad, recipe, hvd=None):
    """Compile a step: the losses of a rank's pairs, the gradients of all ranks summed, Adagrad.

    The gradient of a table is a list of rows. Horovod hands every rank the lists of all, in the order of the ranks;
    `merge` adds up the rows that come several times, before Adagrad squares them.

    Parameters
    ----------
    tables : list of three variables
    adagrad : tf.keras.optimizers.Adagrad
        Built.
    recipe : Recipe
    hvd : module, optional
        Of Horovod; without it one process trains alone.

    Returns
    -------
    function
        `update(centers, contexts, negatives, pairs)`. The first two are a rank's part; `pairs` is the number of pairs
        of all ranks, by which the losses are divided.
    """
    ids = tf.TensorSpec([None], tf.int64)
    number = tf.TensorSpec([], tf.float32)

    @tf.function(autograph=False, input_signature=[ids, ids, ids, number])
    def update(centers, contexts, negatives, pairs):
        with tf.GradientTape() as tape:
            loss = sum_of_losses(tables, centers, contexts, negatives, recipe) / pairs
        if hvd:
            tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        gradients = tape.gradient(loss, tables)
        merged = [merge(gradient) for gradient in gradients]
        adagrad.apply_gradients(zip(merged, tables))

    return update
