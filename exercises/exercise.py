"""What an exercise is made of: an Exercise has cases, and a Case has mistakes."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

ANYTHING = object()  # in the answer of a mistake: whatever the reader has in this place


@dataclass(frozen=True)
class Mistake:
    """A wrong way that readers have gone, and the sentence that helps them.

    Parameters
    ----------
    wrong : callable
        The function of somebody who makes this mistake; called with the arguments of the case. A
        part of its answer may be `ANYTHING`.
    hint : str
        What is printed after "not yet: " when the reader's answer is the same.
    """

    wrong: Callable
    hint: str


@dataclass(frozen=True)
class Case:
    """Arguments, and what the function should return for them.

    Parameters
    ----------
    args : tuple or callable
        The arguments; or a function that returns them, where it takes time to make them.
    answer : Any
        The right answer. Lists, tuples, arrays and tensors are equal if their numbers are.
    mistakes : sequence of Mistake, optional
        Those that are wrong for these arguments and right in all cases before.
    hint : str, optional
        For any other wrong answer; "{answer}" in it is replaced by what the reader has. Without it
        that of the exercise is printed.
    """

    args: tuple | Callable
    answer: Any
    mistakes: Sequence[Mistake] = ()
    hint: str = ""

    def arguments(self):
        """Return the arguments, new ones for each call: a function may write into its own."""
        return self.args() if callable(self.args) else copy.deepcopy(self.args)


@dataclass(frozen=True)
class Exercise:
    """What is asked of the function whose name is that of the variable.

    Parameters
    ----------
    cases : sequence of Case
        Tried in this order; the first wrong answer decides about the hint.
    hint : str, optional
        For the cases that have none of their own.
    kind : str, optional
        What an answer looks like, such as "a pair (centers, contexts)", where the shape of the
        right answer does not say it well.
    in_one_order : callable, optional
        Where the order within an answer is free: a function of the parts of the answer that puts
        them into one order. It is applied to all answers before they are compared.
    """

    cases: Sequence[Case]
    hint: str = ""
    kind: str = ""
    in_one_order: Callable | None = None
