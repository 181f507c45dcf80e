"""The check: finds an exercise by the name of a function, and says what is wrong with an answer."""

import importlib
import math
import numbers
import textwrap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from exercises.exercise import ANYTHING, Exercise

UNTOUCHED = "replace the body of the function with your answer"


def check(fn):
    """Print "correct", or "not yet: " and a hint.

    Parameters
    ----------
    fn : callable
        The reader's function, under the name that it has in the exercise.

    Returns
    -------
    bool
        Whether the answer is right in every case.

    Notes
    -----
    An answer of any kind, and an error in `fn`, end in a line that begins "not yet: ": nothing that
    `fn` does makes the check raise.
    """
    problem = _problem(fn)
    print(textwrap.fill(f"not yet: {problem}", 80) if problem else "correct")
    return problem is None


def lessons():
    """Return the modules of the lessons, in their order.

    Returns
    -------
    list of str
        Such as "ex00_start_here", which is "ex" and the name of the notebook.
    """
    return sorted(path.stem for path in Path(__file__).parent.glob("ex[0-9][0-9]_*.py"))


def exercises_of(lesson):
    """Return the exercises of one lesson.

    Parameters
    ----------
    lesson : str
        One of `lessons()`.

    Returns
    -------
    dict of str to Exercise
        By the name of the function.
    """
    module = importlib.import_module(f"exercises.{lesson}")
    return {name: found for name, found in vars(module).items() if isinstance(found, Exercise)}


@cache
def all_exercises():
    """Return the exercises of all lessons.

    Returns
    -------
    dict of str to Exercise
        By the name of the function.

    Raises
    ------
    ValueError
        If two lessons have an exercise of the same name.
    """
    found = {}
    for lesson in lessons():
        for name, exercise in exercises_of(lesson).items():
            if name in found:
                raise ValueError(f"{name} in {lesson} is also an exercise of another lesson")
            found[name] = exercise
    return found


def _problem(fn):
    exercise = all_exercises().get(getattr(fn, "__name__", None))
    if not callable(fn) or exercise is None:
        return "hand over the function itself, under the name that it has in the exercise"
    for case in exercise.cases:
        problem = _problem_of_case(fn, case, exercise)
        if problem:
            return problem
    return None


def _problem_of_case(fn, case, exercise):
    try:
        given = _comparable(fn(*case.arguments()), exercise)
    except NotImplementedError:
        return UNTOUCHED
    except Exception as error:
        return f"{fn.__name__} raises {type(error).__name__}: {error}"

    right = _comparable(case.answer, exercise)
    if agrees(given, right):
        return None
    for mistake in case.mistakes:
        if agrees(given, _comparable(mistake.wrong(*case.arguments()), exercise)):
            return mistake.hint
    if given is None:
        return UNTOUCHED
    if not agrees(given, right, exactly=False):
        wanted = exercise.kind or _kind(right)
        return f"{wanted} is expected, and your answer is {_kind(given)}: {_short(given)}"
    return (case.hint or exercise.hint).replace("{answer}", _short(given))


def _comparable(answer, exercise):
    answer = plain(answer)
    if exercise.in_one_order:
        with suppress(Exception):  # an answer of another kind stays as it is, and is told so later
            answer = plain(exercise.in_one_order(*answer))
    return answer


def plain(answer):
    """Turn arrays, tensors, tuples and other iterables into lists.

    Parameters
    ----------
    answer : Any
        What a function has returned.

    Returns
    -------
    Any
        Lists of Python numbers, at most 10,000 items of each; texts, dicts and sets as they are.
    """
    if hasattr(answer, "numpy"):
        answer = answer.numpy()
    if isinstance(answer, (np.ndarray, np.generic)):
        answer = answer.tolist()
    if isinstance(answer, Iterable) and not isinstance(answer, (str, bytes, Mapping, set)):
        return [plain(item) for item in islice(answer, 10_000)]
    return answer


def agrees(given, expected, exactly=True):
    """Compare two plain answers.

    Parameters
    ----------
    given, expected : Any
        As `plain` returns them; a part of `expected` may be `ANYTHING`, which equals everything.
    exactly : bool, default True
        False compares only kinds and lengths.

    Returns
    -------
    bool
        Whether they are equal, floats within 1e-5.
    """
    if expected is ANYTHING:
        return True
    if _is_number(expected):
        if not exactly:
            return _is_number(given)
        return _is_number(given) and math.isclose(given, expected, rel_tol=1e-5, abs_tol=1e-7)
    if isinstance(expected, list):
        if not isinstance(given, list) or len(given) != len(expected):
            return False
        return all(agrees(one, other, exactly) for one, other in zip(given, expected))
    if not isinstance(given, Mapping if isinstance(expected, Mapping) else type(expected)):
        return False
    return not exactly or given == expected


def _is_number(value):
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:  # 10**400
        return False
    return True


def _kind(value):
    if _is_number(value):
        return "a number"
    if value is None:
        return "None"
    if not isinstance(value, list):
        return f"a {type(value).__name__}"
    kinds = list(dict.fromkeys(map(_kind, value)))
    if len(kinds) == 1 and kinds != ["a number"]:
        return f"a list of {len(value)}, each {kinds[0]}"
    return f"a list of {len(value)}"


def _short(value):
    if isinstance(value, list):
        text = "[" + ", ".join(map(_short, value[:20])) + "]"
    elif _is_number(value):
        text = f"{float(value):.6g}"
    else:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."
