"""Exercises of 26_looking_at_embeddings."""

import numpy as np

from exercises import Case, Exercise, Mistake


def keyed_vectors(c, e, f):
    """Return a model of six words in the plane, with three of them at the given places."""
    from helpers.word2vec import to_keyed_vectors  # here, because gensim takes a second to load

    vectors = [[1.0, 0.0], [0.985, 0.174], c, [0.866, 0.5], e, f]
    return to_keyed_vectors(np.array(vectors), list("abcdef"))


def one_model_twice():
    model = keyed_vectors(c=[0.94, 0.342], e=[0.766, 0.643], f=[0.643, 0.766])
    return model, model, "a", 2


def two_models():
    first = keyed_vectors(c=[0.94, 0.342], e=[0.766, 0.643], f=[0.643, 0.766])
    second = keyed_vectors(c=[0.643, 0.766], e=[0.94, 0.342], f=[0.766, 0.643])
    return first, second, "a", 2


def words_near(model, word, n):
    return {other for other, _ in model.most_similar(word, topn=n)}


def number_in_both(first, second, word, n):
    return len(words_near(first, word, n) & words_near(second, word, n))


def words_among_pairs(first, second, word, n):
    pairs = second.most_similar(word, topn=n)
    return sum(other in pairs for other in words_near(first, word, n)) / n


def share_of_either(first, second, word, n):
    ones = words_near(first, word, n)
    others = words_near(second, word, n)
    return len(ones & others) / len(ones | others)


overlap = Exercise(
    cases=[
        Case(
            args=one_model_twice,
            answer=1,
            mistakes=[
                Mistake(number_in_both, "that is how many of the n are in both; divide by n"),
                Mistake(
                    words_among_pairs,
                    "a model agrees with itself on all neighbours; compare the words, not the "
                    "pairs of word and cosine",
                ),
            ],
            hint="a model agrees with itself on all neighbours, which is 1; you have {answer}",
        ),
        Case(
            args=two_models,
            answer=0.5,
            mistakes=[
                Mistake(
                    share_of_either,
                    "1 of 3 is the share of all words in either list; "
                    "divide by n, the length of one list",
                ),
            ],
            hint="b is among the 2 nearest of a in both, c only in the first and e only in the "
            "second, so 0.5; you have {answer}",
        ),
    ],
    hint="the share of the n neighbours in the first that are among those in the second; "
    "you have {answer}",
)


SIX_HUBS = np.array([[30.0, 0.0], [1.0, 0.1], [1.0, 0.4], [0.2, 2.0], [-1.0, 3.0], [-3.0, -1.0]])


def of_length_one(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def lists_of(scores, n):
    """Return how often each row is among the n of the greatest scores of a row."""
    return np.bincount(np.argsort(-scores, axis=1)[:, :n].ravel(), minlength=len(scores))


def cosines_of_all(vectors, own=-np.inf):
    unit = of_length_one(vectors)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, own)
    return cosines


def themselves_counted(vectors, n):
    return lists_of(cosines_of_all(vectors, own=1), n)


def by_dot_product(vectors, n):
    products = vectors @ vectors.T
    np.fill_diagonal(products, -np.inf)
    return lists_of(products, n)


def most_distant(vectors, n):
    return lists_of(-cosines_of_all(vectors, own=np.inf), n)


def without_the_rows_in_no_list(vectors, n):
    return np.trim_zeros(lists_of(cosines_of_all(vectors), n), "b")


hubs = Exercise(
    cases=[
        Case(
            args=(SIX_HUBS, 2),
            answer=[2, 2, 4, 2, 2, 0],
            mistakes=[
                Mistake(themselves_counted, "every row is nearest to itself; leave it out"),
                Mistake(
                    by_dot_product,
                    "that counts by dot product, and row 0 is long; divide each vector by its length",
                ),
                Mistake(most_distant, "that counts the most distant rows; sort by falling cosine"),
                Mistake(
                    without_the_rows_in_no_list,
                    "row 5 is in no list, and that is 0; give a number for each of the 6 rows",
                ),
            ],
        ),
    ],
    hint="with n = 2 the 6 rows stand in 2, 2, 4, 2, 2 and 0 lists; you have {answer}",
)
