"""Exercises of 24_slow_networks."""

from exercises import Case, Exercise, Mistake


def mbit(seconds, n_bytes):
    return 8 * n_bytes / 1e6 / seconds


least_mbit = Exercise(
    cases=[
        Case(
            args=(0.1, 1000000, 0.0, 1),
            answer=80,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency, gain: n_bytes / 1e6 / (compute - latency),
                    "that is in megabytes per second; a byte has 8 bits",
                ),
                Mistake(
                    lambda compute, n_bytes, latency, gain: 8 * n_bytes / (compute - latency),
                    "that is in bit/s; a Mbit is a million of them",
                ),
                Mistake(
                    lambda compute, n_bytes, latency, gain: 2 * mbit(compute - latency, n_bytes),
                    "two hosts need not be twice as fast as one here: gain is 1, so they may communicate "
                    "for as long as they compute",
                ),
            ],
        ),
        Case(
            args=(0.1, 1000000, 0.02, 1),
            answer=100,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency, gain: mbit(compute, n_bytes),
                    "the latency takes 20 ms of the 100 ms that the exchange may last",
                ),
            ],
        ),
        Case(
            args=(0.1, 1000000, 0.02, 1.6),
            answer=1600,
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency, gain: mbit(compute - latency, n_bytes),
                    "that bandwidth makes two hosts as fast as one, not 1.6 times as fast",
                ),
                Mistake(
                    lambda compute, n_bytes, latency, gain: gain * mbit(compute - latency, n_bytes),
                    "only the bytes become faster with the bandwidth: computing and latency stay",
                ),
                Mistake(
                    lambda compute, n_bytes, latency, gain: mbit(compute / gain - latency, n_bytes),
                    "two hosts do two batches in a step: it may take 2 x compute / gain, of which compute is gone",
                ),
            ],
            hint="a step may take 2 x 0.1 / 1.6 = 0.125 s, computing and latency take 0.12 s; you have {answer}",
        ),
        Case(
            args=(0.1, 1000000, 0.02, 1.9),
            answer=float("inf"),
            mistakes=[
                Mistake(
                    lambda compute, n_bytes, latency, gain: mbit(2 * compute / gain - compute - latency, n_bytes),
                    "a bandwidth cannot be negative: computing and latency alone take longer than the step may; "
                    'return float("inf")',
                ),
            ],
        ),
    ],
    hint="1 MB is 8 Mbit, and with gain 1 it may travel for as long as a step computes, 0.1 s; you have {answer}",
)
