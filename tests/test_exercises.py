"""Every exercise: its solution passes, each known mistake gets its own hint, and no answer makes the check fail."""

import math

import notebook_rules as rules
import numpy as np
import pytest

from helpers import exercises

NOTEBOOKS = sorted((rules.ROOT / "notebooks").glob("*.ipynb"))
NAMES = list(exercises._nodes(exercises.TABLE))
TODO = "not yet: replace the body of the function with your answer"
MISTAKES = [
    pytest.param(name, case, mistake, id=f"{name}-{case}-{mistake}")
    for name in NAMES
    for case, entry in enumerate(exercises.exercise(name)["cases"])
    for mistake in range(len(entry.get("mistakes", ())))
]


def named(name, fn):
    fn.__name__ = name
    return fn


def said(fn, capsys):
    """What the check prints about fn, in one line; the check itself must say the same."""
    passed = exercises.check(fn)
    printed = capsys.readouterr().out
    assert passed is (printed == "correct\n")
    assert all(len(line) <= 80 for line in printed.splitlines())
    return " ".join(printed.split())


def replay(name, answers):
    """A function of that name with these answers, one after the other."""
    coming = iter(answers)
    return named(name, lambda *arguments: next(coming))


@pytest.mark.parametrize(("name", "case", "number"), MISTAKES)
def test_each_known_mistake_gets_its_own_hint(name, case, number, capsys):
    entry = exercises.exercise(name)
    cases, mistake = entry["cases"], entry["cases"][case]["mistakes"][number]
    if "view" not in entry:  # those of a view are stated as they are compared, not as they are returned
        before = [other["answer"] for other in cases[:case]]
        wrong = replay(name, [*before, mistake["answer"]])
        assert said(wrong, capsys) == "not yet: " + " ".join(mistake["hint"].split())
    if "code" in mistake:
        wrong = named(name, eval(f"lambda {mistake['code']}", {"np": np, "math": math}))
        assert said(wrong, capsys) == "not yet: " + " ".join(mistake["hint"].split())


@pytest.mark.parametrize("name", NAMES)
def test_hints_differ_and_stay_short(name):
    entry = exercises.exercise(name)
    hints = [mistake["hint"] for case in entry["cases"] for mistake in case.get("mistakes", ())]
    assert len(set(hints)) == len(hints) >= 2
    general = [case.get("hint") or entry["hint"] for case in entry["cases"]]
    assert all(len(hint) < 150 for hint in [*general, *hints])


ODD_ANSWERS = {
    "zero": 0, "two numbers": [1, 2], "a text": "text", "a tuple": (1,), "a dict": {}, "an object": object(),
    "ragged": [[1], [2, 3]], "nan": math.nan, "True": True, "a huge array": np.zeros([300, 300]),
    "an endless iterator": range(10**9), "a set": {1, 2}, "a complex number": 1j, "bytes": b"12",
}  # fmt: skip


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
    pairs = rules.exercise_pairs(path)
    here = {name for name in NAMES if exercises.exercise(name)["notebook"] == path.name[:2]}
    shown = set()
    for stub, solution in pairs:
        (call,) = rules.check_calls(stub)
        name = call.args[0].id
        shown.add(name)
        namespace = {"check": exercises.check}
        exec(stub.source, namespace)
        assert capsys.readouterr().out == "".join(rules.texts(stub))
        for block in rules.solution_blocks(solution):
            exec(block, namespace)
        assert said(namespace[name], capsys) == "correct", name
    assert shown == here
    assert len(shown) == len(pairs)


def test_answers_of_any_container_are_equal():
    agrees, plain = exercises.agrees, exercises._plain
    assert agrees(plain((np.array([1.0, 2]), np.float32(0.1))), [[1, 2], 0.1])
    assert agrees(plain(map(float, [1, 2])), [1, 2])
    assert not agrees(plain([1, 2.001]), [1, 2])
    assert not agrees(plain([1, 2, 3]), [1, 2])
    assert not agrees(plain(np.ones(1)), 1)
    assert not agrees(True, 1) and not agrees("1", 1)
