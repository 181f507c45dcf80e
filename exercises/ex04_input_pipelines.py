"""Exercises of 04_input_pipelines."""

from exercises import Case, Exercise, Mistake


def slower_side(making, training):
    return max(sum(making), sum(training))


def slower_of_each(making, training):
    return sum(map(max, making, training))


def one_ahead(making, training):
    steps = zip(making[1:], training, strict=False)  # batch i + 1 is made while the loop trains on batch i
    return making[0] + sum(max(make, train) for make, train in steps) + training[-1]


finish_time = Exercise(
    cases=[
        Case(
            args=([4, 1, 1], [2, 5, 2]),
            answer=13,
            mistakes=[
                Mistake(
                    lambda making, training: sum(making) + sum(training),
                    "15 is right without prefetching, where making and training take turns",
                ),
                Mistake(
                    slower_side,
                    "9 lets the loop train before the first batch is made, at 4 ms",
                ),
                Mistake(
                    slower_of_each,
                    "11 forgets that batch 1 must be made before training begins: 4 + 2 for batch 1, not 4",
                ),
            ],
        ),
        Case(
            args=([1, 1, 1, 12], [3, 3, 3, 3]),
            answer=18,
            mistakes=[
                Mistake(
                    lambda making, training: making[0] + sum(training),
                    "13 lets batch 4 be trained before it is made, at 1 + 1 + 1 + 12 = 15 ms",
                ),
                Mistake(
                    one_ahead,
                    "22 is right for a maker that stays one batch ahead; this one never waits, and "
                    "has made batch 4 at 15 ms",
                ),
            ],
        ),
        Case(
            args=([6, 6, 6], [2, 2, 2]),
            answer=20,
            hint="the third batch is made at 18 ms, and then trained for 2; you have {answer}",
        ),
    ],
    hint="batch i is made at making[0] + ... + making[i]; training on it begins then, or when the loop is free, "
    "whichever is later; you have {answer}",
)


def with_unlimited_room(making, training, room):
    made = trained = 0
    for make, train in zip(making, training, strict=True):
        made += make
        trained = max(made, trained) + train
    return trained


def room_before_making(making, training, room):
    made = trained = 0
    begun = []
    for number, (make, train) in enumerate(zip(making, training, strict=True)):
        if number >= room:
            made = max(made, begun[number - room])
        made += make
        begun.append(max(made, trained))
        trained = begun[-1] + train
    return trained


finish_with_room = Exercise(
    cases=[
        Case(
            args=([1, 1, 1, 12], [3, 3, 3, 3], 1),
            answer=19,
            mistakes=[
                Mistake(
                    with_unlimited_room,
                    "18 is right for a queue without a limit; here batch 3 waits in the thread's hand from 3 to 4 ms",
                ),
                Mistake(
                    room_before_making,
                    "22 lets the thread wait for room before it makes a batch; it waits only before it puts one",
                ),
                Mistake(
                    lambda making, training, room: sum(making) + sum(training),
                    "27 is right without prefetching, where making and training take turns",
                ),
            ],
        ),
        Case(
            args=([1, 1, 1, 12], [3, 3, 3, 3], 2),
            answer=18,
            hint="with room for two the thread never waits, and batch 4 is made at 15 ms; you have {answer}",
        ),
        Case(
            args=([1, 1, 1, 1, 1, 12], [3, 3, 3, 3, 3, 3], 2),
            answer=22,
            hint="batch 5 is made at 5 ms and put at 7, when the loop takes batch 3; you have {answer}",
        ),
        Case(
            args=([6, 6, 6], [2, 2, 2], 1),
            answer=20,
            hint="this thread never waits for room: batch 3 is made at 18 ms, then trained for 2; you have {answer}",
        ),
    ],
    hint="batch i is put when it is made and the loop has taken batch i - room, whichever is later; you have {answer}",
)
