"""The check of an exercise: `check(fn)` prints "correct", or "not yet" and a hint, from the table in exercises.yaml."""

import math
import numbers
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import yaml

TABLE = Path(__file__).with_suffix(".yaml")
UNTOUCHED = "replace the body of the function with your answer"
VIEWS = {  # what is compared where the order within an answer is free
    "pairs": lambda centers, contexts: sorted([a, b] for a, b in zip(centers, contexts, strict=True)),
    "windows": lambda contexts, centers: [[sorted(row) for row in contexts], centers],
}


def check(fn):
    """Whether `fn`, looked up by its name, gives the right answer in every case of its exercise; prints a line or two.

    Never raises: what is wrong with an answer of any kind, or the error in it, is in the line that begins "not yet: ".
    """
    problem = _problem(fn)
    print(textwrap.fill(f"not yet: {problem}", 80) if problem else "correct")
    return problem is None


def exercise(name):
    """The exercise whose function has this name, as dict, or None; see the head of exercises.yaml."""
    node = _nodes(TABLE).get(name)
    return node and _Loader("").construct_document(node)  # this one alone: gensim takes a second to load


@cache
def _nodes(table):
    return {key.value: value for key, value in yaml.compose(table.read_text("utf-8"), _Loader).value}


def _problem(fn):
    found = exercise(getattr(fn, "__name__", None))
    if not callable(fn) or not found:
        return "hand over the function itself, under the name that it has in the exercise"
    return next(filter(None, (_problem_of_case(fn, case, found) for case in found["cases"])), None)


def _problem_of_case(fn, case, found):
    try:
        given = _plain(fn(*case["args"]))
    except NotImplementedError:
        return UNTOUCHED
    except Exception as error:
        return f"{fn.__name__} raises {type(error).__name__}: {error}"
    with suppress(Exception):  # an answer of another kind is not rearranged, and is told so below
        given = _plain(VIEWS[found["view"]](*given)) if "view" in found else given
    if agrees(given, case["answer"]):
        return None
    for mistake in case.get("mistakes", ()):
        if agrees(given, mistake["answer"]):
            return mistake["hint"]
    if given is None:
        return UNTOUCHED
    if not agrees(given, case["answer"], exactly=False):
        wanted = found.get("kind") or _kind(case["answer"])
        return f"{wanted} is expected, and your answer is {_kind(given)}: {_short(given)}"
    return (case.get("hint") or found["hint"]).replace("{answer}", _short(given))


def agrees(given, expected, exactly=True):
    """Whether two plain answers are equal, floats within 1e-5; or only of the same kind and shape. "_" equals all."""
    if isinstance(expected, str) and expected == "_":
        return True
    if _is_number(expected):
        return _is_number(given) and (not exactly or math.isclose(given, expected, rel_tol=1e-5, abs_tol=1e-7))
    if not isinstance(given, Mapping if isinstance(expected, Mapping) else type(expected)):
        return False
    if isinstance(expected, list):
        return len(given) == len(expected) and all(map(agrees, given, expected, repeat(exactly)))
    return not exactly or given == expected


def _plain(answer):
    """Arrays, tensors, tuples and what else can be gone through as lists; at most 10,000 items of it."""
    answer = answer.numpy() if hasattr(answer, "numpy") else answer
    answer = answer.tolist() if isinstance(answer, (np.ndarray, np.generic)) else answer
    if isinstance(answer, Iterable) and not isinstance(answer, (str, bytes, Mapping, set)):
        return [_plain(item) for item in islice(answer, 10_000)]
    return answer


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _kind(value):
    if _is_number(value):
        return "a number"
    if not isinstance(value, list):
        return "None" if value is None else f"a {type(value).__name__}"
    kinds = list(dict.fromkeys(map(_kind, value)))
    return f"a list of {len(value)}" + (f", each {kinds[0]}" if len(kinds) == 1 and kinds != ["a number"] else "")


def _short(value):
    if isinstance(value, list):
        text = "[" + ", ".join(map(_short, value[:20])) + "]"
    else:
        text = f"{value:.6g}" if _is_number(value) else repr(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML with a few tags for arguments; the parser in C where there is one."""


def _key_vectors(loader, node):
    from helpers.word2vec import to_keyed_vectors

    table = loader.construct_mapping(node, deep=True)
    return to_keyed_vectors(np.array(list(table.values())), list(table))


_Loader.add_constructor("!array", lambda loader, node: np.array(loader.construct_sequence(node, deep=True)))
_Loader.add_constructor("!counter", lambda loader, node: Counter(loader.construct_scalar(node)))
_Loader.add_constructor("!vectors", _key_vectors)
