"""Exercises of 06_samplers_and_cost."""

from exercises import Case, Exercise, Mistake

expected_count = Exercise(
    cases=[
        Case(
            args=(0.5, 3),
            answer=0.875,
            mistakes=[
                Mistake(
                    lambda p, tries: p * tries,
                    "p * tries counts repeats too, but a word is at most once among samples that "
                    "are all different",
                ),
                Mistake(
                    lambda p, tries: min(1, p * tries),
                    "p * tries counts repeats too, and cutting it off at 1 does not take them out",
                ),
                Mistake(
                    lambda p, tries: (1 - p) ** tries,
                    "0.125 is the probability that all 3 draws miss the word",
                ),
            ],
        ),
        Case(
            args=(0.1, 2),
            answer=0.19,
            mistakes=[
                Mistake(
                    lambda p, tries: 1 - p**tries,
                    "p ** tries is the probability that every draw hits the word; when is it "
                    "missing?",
                ),
            ],
            hint="p=0.1 and tries=2: it is missing if both draws miss it; you have {answer}",
        ),
    ],
    hint="p=0.5 and tries=3: only one of the 8 outcomes misses the word; you have {answer}",
)
