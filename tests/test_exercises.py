"""Every exercise: its solution passes, each known mistake gets its own hint, and no answer makes the check fail."""

import math
import re
import warnings

import notebook_rules as rules
import numpy as np
import pytest
from programs import said_by

from exercises import ANYTHING, Case, Exercise, Mistake, all_exercises, check, checking, exercises_of, lessons

NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
NAMES = list(all_exercises())
TODO = "not yet: replace the body of the function with your answer"
MISTAKES = [
    pytest.param(name, number, mistake, id=f"{name}-{number}-{place}")
    for name, exercise in all_exercises().items()
    for number, case in enumerate(exercise.cases)
    for place, mistake in enumerate(case.mistakes)
]
ODD_ANSWERS = {
    "zero": 0, "two numbers": [1, 2], "a text": "text", "a tuple": (1,), "a dict": {}, "an object": object(),
    "ragged": [[1], [2, 3]], "nan": math.nan, "True": True, "a huge array": np.zeros([300, 300]),
    "an endless iterator": range(10**9), "a set": {1, 2}, "a complex number": 1j, "bytes": b"12",
}  # fmt: skip


def named(name, fn):
    fn.__name__ = name
    return fn


def said(fn, capsys):
    """What the check prints about fn, in one line; the check itself must say the same."""
    passed = check(fn)
    printed = capsys.readouterr().out
    assert passed is (printed == "correct\n")
    assert all(len(line) <= 80 for line in printed.splitlines())
    return " ".join(printed.split())


def somebody_who_makes(mistake, number, cases):
    """A reader's function with this mistake; what it leaves open is right before its case, and odd from there on."""
    coming = iter(cases)

    def fn(*arguments):
        answer, case = mistake.wrong(*arguments), next(coming)
        if not isinstance(answer, (list, tuple)):
            return answer
        others = case.answer if case in cases[:number] else ["odd"] * len(answer)
        return [other if part is ANYTHING else part for part, other in zip(answer, others, strict=True)]

    return fn


@pytest.mark.parametrize(("name", "number", "mistake"), MISTAKES)
def test_each_known_mistake_gets_its_own_hint(name, number, mistake, capsys):
    wrong = somebody_who_makes(mistake, number, all_exercises()[name].cases)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it would stand in the notebook, below the hint
        assert said(named(name, wrong), capsys) == f"not yet: {mistake.hint}"
    stated = re.match(r"([\d.]+) (is|forgets|counts) ", mistake.hint)  # "0.8 is the speed-up", "600 forgets that"
    if stated:
        answer = mistake.wrong(*all_exercises()[name].cases[number].arguments())
        assert (answer[0] if isinstance(answer, tuple) else answer) == pytest.approx(float(stated[1]))


@pytest.mark.parametrize("name", NAMES)
def test_every_wrong_answer_has_a_hint_and_no_two_are_the_same(name):
    exercise = all_exercises()[name]
    hints = [mistake.hint for case in exercise.cases for mistake in case.mistakes]
    assert len(set(hints)) == len(hints) >= 2
    general = [case.hint or exercise.hint for case in exercise.cases]
    assert all(0 < len(hint) < 150 for hint in [*general, *hints])


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_of_any_kind_gets_a_sentence(name, capsys):
    for kind, answer in ODD_ANSWERS.items():
        line = said(named(name, lambda *arguments, answer=answer: answer), capsys)
        assert line.startswith("not yet: ") and len(line) < 240, kind


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_stub_and_an_answer_that_fails(name, capsys):
    def stub(*arguments):
        raise NotImplementedError

    def failing(*arguments):
        return 1 / 0

    assert said(named(name, stub), capsys) == TODO
    assert said(named(name, lambda *arguments: None), capsys) == TODO
    assert said(named(name, failing), capsys) == f"not yet: {name} raises ZeroDivisionError: division by zero"
    assert f"not yet: {name} raises TypeError" in said(named(name, lambda: 1), capsys)


@pytest.mark.parametrize("other", [len, 3, None, "plan", lambda x: x], ids=["len", "3", "None", "text", "lambda"])
def test_what_is_no_exercise(other, capsys):
    assert "hand over the function itself" in said(other, capsys)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_has_its_exercises_unsolved_and_their_solutions_pass(path, capsys):
    shown = []
    for stub, solution in rules.exercise_pairs(path):
        (call,) = rules.check_calls(stub)
        name = call.args[0].id
        shown.append(name)
        namespace = {"check": check}
        exec(stub.source, namespace)
        assert capsys.readouterr().out == "".join(rules.texts(stub))
        for block in rules.solution_blocks(solution):
            exec(block, namespace)
        assert said(namespace[name], capsys) == "correct", name
    lesson = f"ex{path.stem}"
    assert sorted(shown) == sorted(exercises_of(lesson) if lesson in lessons() else [])


def test_every_lesson_has_a_notebook_and_each_name_stands_for_one_exercise(monkeypatch):
    assert {lesson[2:] for lesson in lessons()} <= {path.stem for path in NOTEBOOKS}
    for lesson in lessons():
        source = (rules.ROOT / "exercises" / f"{lesson}.py").read_text(encoding="utf-8")
        assert source.count(" = Exercise(\n") == len(exercises_of(lesson)), f"a name twice in {lesson}"
    monkeypatch.setattr(checking, "lessons", lambda: [lessons()[0]] * 2)
    with pytest.raises(ValueError, match="total_of in ex00_start_here is also"):
        all_exercises.__wrapped__()


def test_a_function_that_writes_into_its_arguments_spoils_nothing(monkeypatch, capsys):
    case = Case(args=([3, 1],), answer=[1, 3], mistakes=[Mistake(lambda x: x, "sort them")], hint="[1, 3]")
    monkeypatch.setitem(all_exercises(), "ordered", Exercise(cases=[case]))
    assert said(named("ordered", lambda x: x.append(0)), capsys) == TODO
    assert said(named("ordered", lambda x: x), capsys) == "not yet: sort them"
    assert said(named("ordered", lambda x: x.sort() or x), capsys) == "correct"


def test_a_check_starts_quickly_because_it_loads_neither_gensim_nor_tensorflow():
    code = "import sys, exercises as e; e.all_exercises(); print({'gensim', 'tensorflow'} & set(sys.modules))"
    assert said_by(code) == "set()\n"


def test_answers_of_any_container_are_equal():
    agrees, plain = checking.agrees, checking.plain
    assert agrees(plain((np.array([1.0, 2]), np.float32(0.1))), [[1, 2], 0.1])
    assert agrees(plain(map(float, [1, 2])), [1, 2])
    assert not agrees(plain([1, 2.001]), [1, 2])
    assert not agrees(plain([1, 2, 3]), [1, 2])
    assert not agrees(plain(np.ones(1)), 1)
    assert not agrees(True, 1) and not agrees("1", 1)
