"""The checks of the exercises: what a right answer is, the known mistakes, and the hint for each.

A notebook says `from exercises import check`, and `check(fn)` finds the exercise by the name of the
function. Each lesson has one file here: "ex" and the name of its notebook, so that
`ex00_start_here.py` belongs to `notebooks/00_start_here.ipynb`. In it every exercise is a variable
with the name of the function that the reader writes::

    global_mean = Exercise(
        cases=[
            Case(
                args=([1.0, 4.0], [30, 10]),
                answer=1.75,
                mistakes=[
                    Mistake(
                        lambda means, counts: sum(means) / len(means),
                        "2.5 is the mean of the means; rank 0 has three times as many examples",
                    ),
                ],
            ),
        ],
        hint="add up the 40 examples; you have {answer}",
    )

The reader's function is called with the arguments of one case after the other, and the first answer
that is not right decides: if one of the case's mistakes gives the same answer, its hint is printed,
otherwise the hint of the case, or that of the exercise.

To add a mistake, write the function of somebody who makes it (a lambda, or a function above the
exercise) and the sentence that helps, in the first case that it gets wrong. To add an exercise,
write one more variable; no other lesson may have one of the same name. To move an exercise, cut it
out together with the functions above it, and paste it into the file of the other lesson. Then run
`pytest tests/test_exercises.py`: it makes every mistake and looks whether its hint comes.

The solutions are not here: they are folded away in the notebooks, and the tests run them.
"""

from exercises.checking import all_exercises, check, exercises_of, lessons
from exercises.exercise import ANYTHING, Case, Exercise, Mistake

__all__ = [
    "ANYTHING",
    "Case",
    "Exercise",
    "Mistake",
    "all_exercises",
    "check",
    "exercises_of",
    "lessons",
]
