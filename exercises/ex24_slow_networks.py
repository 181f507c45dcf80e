"""Exercises of 24_slow_networks."""

from exercises import Case, Exercise, Mistake

least_mbit = Exercise(
    cases=[
        Case(
            args=(0.1, 1000000, 0.0),
            answer=80,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency: n_bytes / 1e6 / (compute - latency),
                    "that is in megabytes per second; a byte has 8 bits",
                ),
                Mistake(
                    lambda compute, n_bytes, latency: 8 * n_bytes / (compute - latency),
                    "that is in bit/s; a Mbit is a million of them",
                ),
                Mistake(
                    lambda compute, n_bytes, latency: 2 * 8 * n_bytes / 1e6 / (compute - latency),
                    "two hosts need not be twice as fast as one, only faster; they may communicate "
                    "for as long as they compute",
                ),
            ],
        ),
        Case(
            args=(0.1, 1000000, 0.02),
            answer=100,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency: 8 * n_bytes / 1e6 / compute,
                    "the latency takes 20 ms of the 100 ms that the exchange may last",
                ),
            ],
        ),
    ],
    hint="1 MB is 8 Mbit, and it may travel for as long as a step computes, 0.1 s; "
    "you have {answer}",
)
