"""Exercises of 08_ring_and_network."""

from exercises import Case, Exercise, Mistake


def allreduce(n_bytes, size, latency, bandwidth):
    return latency + 2 * (size - 1) / size * n_bytes / bandwidth


def share_of_one(n_bytes, size, latency, bandwidth):
    return size * allreduce(n_bytes, size, latency, bandwidth)


def message_sent_once(n_bytes, size, latency, bandwidth):
    return (latency + n_bytes / bandwidth) * size / (size - 1)


def no_latency(n_bytes, size, latency, bandwidth):
    return 2 * n_bytes / bandwidth


break_even = Exercise(
    cases=[
        Case(
            args=(1000, 4, 0.75, 1000.0),
            answer=3.0,
            mistakes=[
                Mistake(
                    allreduce,
                    "these are the seconds of the allreduce; the step must be longer, for of its seconds "
                    "the ranks save only a part",
                ),
                Mistake(
                    share_of_one,
                    "each of 4 ranks works for 1/4 of the step; so 3/4 of it are saved, not 1/4",
                ),
                Mistake(
                    message_sent_once,
                    "a rank sends 2 (N - 1)/N times the message, not the message once",
                ),
                Mistake(no_latency, "the allreduce has its latency, too, not only its bytes"),
            ],
        ),
        Case(
            args=(3000, 2, 0.25, 1000.0),
            answer=6.5,
            hint="3000 bytes, 2 ranks, 0.25 s, 1000 bytes/s: the allreduce takes 3.25 s, and half of the step is "
            "saved, so 6.5 s, not {answer}",
        ),
    ],
    hint="1000 bytes, 4 ranks, 0.75 s, 1000 bytes/s: the allreduce takes 2.25 s, and 3/4 of the step are "
    "saved, so 3 s, not {answer}",
)
