"""Exercises of 01_when_to_distribute."""

from exercises import Case, Exercise, Mistake

measured_efficiency = Exercise(
    cases=[
        Case(
            args=(0.02, 0.05, 2),
            answer=0.4,
            mistakes=[
                Mistake(
                    lambda alone, together, n: n * alone / together,
                    "0.8 is the speed-up of two ranks; the efficiency is that divided by the number of ranks",
                ),
                Mistake(
                    lambda alone, together, n: alone / (n * together),
                    "each of the two ranks does a batch of its own, so two batches are done in a step",
                ),
                Mistake(
                    lambda alone, together, n: together / alone,
                    "the step with the exchange takes longer, so the efficiency is below 1; divide the other way round",
                ),
            ],
        ),
        Case(
            args=(1.0, 1.0, 8),
            answer=1,
            hint="eight ranks at full speed have the speed-up 8 and the efficiency 1; you have {answer}",
        ),
    ],
    hint="0.02 s alone, 0.05 s with a second rank: two batches in 0.05 s instead of 0.04 s; you have {answer}",
)

bubble_share = Exercise(
    cases=[
        Case(
            args=(2, 3),
            answer=0.25,
            mistakes=[
                Mistake(lambda p, m: m / (m + p - 1), "that is the share of time in which a rank works"),
                Mistake(
                    lambda p, m: (p - 1) / m,
                    "that is the idle time over the time at work; divide by all the time, work and waiting",
                ),
                Mistake(
                    lambda p, m: (p - 1) / (m + p),
                    "rank 1 begins one slot after rank 0, so three micro-batches take four slots, not five",
                ),
                Mistake(lambda p, m: (p - 1) / p, "that is without micro-batches, m = 1"),
            ],
        ),
        Case(args=(2, 1), answer=0.5),
        Case(
            args=(4, 1),
            answer=0.75,
            mistakes=[
                Mistake(
                    lambda p, m: 1 / (m + 1), "right for two ranks; with four the last one begins three slots late"
                ),
            ],
        ),
        Case(args=(4, 64), answer=3 / 67),
    ],
    hint="two ranks and three micro-batches: four slots, of which each rank works in three; you have {answer}",
)
