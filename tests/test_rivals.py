"""The pairs that lesson 13 draws from blocks are those of word2vec, and what it times of gensim is training."""

import numpy as np

from helpers.word2vec import Blocks, cut_blocks, pad_text
from lesson_parts import rivals
from lesson_parts.rivals import draw_pairs, gensim_seconds, on_drawn_pairs

BLOCKS = Blocks()
N = 10_000  # the word is the place; random words are those above it


def some_blocks():
    rng = np.random.default_rng(0)
    text = np.arange(1, N + 1, dtype=np.int32)
    noise = (N + 1 + np.arange(500 * BLOCKS.random, dtype=np.int32)).reshape(500, BLOCKS.random)
    words = cut_blocks(pad_text(text, BLOCKS), 0, 1, noise, rng, BLOCKS)
    return words.reshape(-1, words.shape[-1])


def drawn():
    return draw_pairs(some_blocks(), BLOCKS.window, BLOCKS.random, BLOCKS.negatives)


def test_each_distance_as_often_as_word2vec_draws_it_and_no_padding():
    pairs = drawn()
    distance = abs(pairs[:, 1] - pairs[:, 0])
    assert pairs[:, :2].min() >= 1 and pairs[:, :2].max() <= N
    counts = np.bincount(distance, minlength=7) / (2 * N)
    np.testing.assert_allclose(counts, [0, 1, 0.8, 0.6, 0.4, 0.2, 0], atol=0.02)


def test_random_words_are_drawn_from_all_blocks():
    random = drawn()[:, 2:]
    assert random.shape[1] == BLOCKS.negatives and random.min() > N
    halves = np.histogram(random, bins=2)[0] / random.size
    np.testing.assert_allclose(halves, 0.5, atol=0.06)
    assert len(np.unique(random[:, 0])) > 3_000


def test_a_call_draws_what_the_last_one_drew():
    assert (drawn() == drawn()).all()


def test_a_loop_over_pairs_gets_them_and_the_time_of_drawing_is_noted():
    seen, drawing = [], []
    train = on_drawn_pairs(lambda *arguments: seen.append(arguments), BLOCKS.negatives, drawing)
    for _ in range(2):
        train("centers", "contexts", None, None, some_blocks(), None, BLOCKS.window, BLOCKS.random, 0.045, 6.0)
    (centers, contexts, pairs, *rates), again = seen
    assert (centers, contexts, rates) == ("centers", "contexts", [0.045, 6.0])
    assert (pairs == drawn()).all() and (again[2] == pairs).all()
    assert len(drawing) == 2 and min(drawing) > 0


def test_gensim_trains_every_third_line_and_its_seconds_are_those_of_all(monkeypatch):
    asked, clock = [], iter([10.0, 12.0])

    class Model:
        def __init__(self, **settings):
            asked.append(settings)

        def build_vocab(self, lines):
            asked.append(lines)

        def train(self, lines, total_examples, epochs):
            asked.append((lines, total_examples, epochs))

    monkeypatch.setattr(rivals, "Word2Vec", Model)
    monkeypatch.setattr(rivals.time, "perf_counter", lambda: next(clock))
    words = [*map(str, range(6_000))]
    assert gensim_seconds(words, every=3, workers=1, window=5) == 2 * 3
    settings, lines, (trained, count, epochs) = asked
    assert settings == {"sg": 1, "workers": 1, "min_count": 1, "window": 5}
    assert sum(lines, []) == words and trained == [lines[0], lines[3]] and (count, epochs) == (2, 1)
