"""Exercises of 04_collectives."""

import numpy as np

from exercises import Case, Exercise, Mistake

time_inside = Exercise(
    cases=[
        Case(
            args=([0.3, 0.0, 0.1, 0.2],),
            answer=[0, 0.3, 0.2, 0.1],
            mistakes=[
                Mistake(
                    lambda delays: delays,
                    "that is how long each rank waits before it calls; the one that calls last "
                    "does not wait inside",
                ),
                Mistake(
                    lambda delays: [max(delays)] * len(delays),
                    "all leave together, but they have not entered together",
                ),
                Mistake(
                    lambda delays: [d - max(delays) for d in delays],
                    "the sign; a rank is inside until the last one comes, which is max(delays)",
                ),
                Mistake(
                    lambda delays: [d if d == max(delays) else 0 for d in delays],
                    "it is the others that wait for the last one, not the last one for them",
                ),
            ],
        ),
    ],
    hint="rank 0 enters last, after 0.3 s, and nobody leaves before; you have {answer}",
)

part_to_send = Exercise(
    cases=[
        Case(
            args=(0, 1, 4),
            answer=0,
            mistakes=[
                Mistake(
                    lambda step, owned, size: (owned - step) % size,
                    "part 1 is the one to own in the end; it comes in the last step, and the rank "
                    "never sends it",
                ),
            ],
        ),
        Case(
            args=(1, 1, 4),
            answer=3,
            mistakes=[
                Mistake(
                    lambda step, owned, size: (owned - 1 + step) % size,
                    "in each step a rank sends the part that it has just received, which has the "
                    "number below, not above",
                ),
                Mistake(
                    lambda step, owned, size: owned - 1 - step,
                    "4 ranks have parts 0 to 3, and you send part -1: take it modulo the size",
                ),
                Mistake(
                    lambda step, owned, size: (owned - 1) % size,
                    "in each step another part goes out, the one that has just come in",
                ),
            ],
            hint="to own part 1 of 4 a rank sends 0, 3, 2, the part it received before; in step 1 "
            "you send {answer}",
        ),
        Case(args=(2, 1, 4), answer=2),
        Case(args=(0, 0, 4), answer=3),
        Case(
            args=(1, 0, 3),
            answer=1,
            hint="with 3 ranks, to own part 0 a rank sends 2, then 1; you send {answer}",
        ),
    ],
    hint="to own part 1 of 4 a rank sends 0, 3, 2, and to own part 0 it sends 3, 2, 1; "
    "you send {answer}",
)


def whole_projection(a, b):
    return (1 - a @ b / (a @ a)) * a + (1 - a @ b / (b @ b)) * b


adasum = Exercise(
    cases=[
        Case(
            args=(np.array([1.0, 1.0]), np.array([2.0, 0.0])),
            answer=[2, 0.5],
            mistakes=[
                Mistake(
                    lambda a, b: a + b,
                    "that is the plain sum; each vector is shortened first",
                ),
                Mistake(
                    whole_projection,
                    "each vector is shortened by *half* its projection on the other",
                ),
                Mistake(
                    lambda a, b: (a + b) / 2,
                    "that is the average; Adasum averages only what points the same way",
                ),
            ],
        ),
    ],
    hint="[1, 1] and [2, 0] give [2, 0.5]; you have {answer}",
)


def message_sent_once(tensors, n_bytes, size, latency, bandwidth):
    wire = tensors * n_bytes / bandwidth
    return tensors * latency + wire, latency + wire


def nothing_fused(tensors, n_bytes, size, latency, bandwidth):
    wire = 2 * (size - 1) / size * tensors * n_bytes / bandwidth
    return tensors * latency + wire, tensors * latency + wire


def one_tensor_fused(tensors, n_bytes, size, latency, bandwidth):
    wire = 2 * (size - 1) / size * n_bytes / bandwidth
    return tensors * (latency + wire), latency + wire


def fused_first(tensors, n_bytes, size, latency, bandwidth):
    wire = 2 * (size - 1) / size * tensors * n_bytes / bandwidth
    return latency + wire, tensors * latency + wire


tensors_time = Exercise(
    cases=[
        Case(
            args=(10, 1000, 4, 0.5, 1000.0),
            answer=(20, 15.5),
            mistakes=[
                Mistake(
                    message_sent_once,
                    "a rank sends 2 (N - 1)/N times the message, not the message once",
                ),
                Mistake(nothing_fused, "fused, the ten tensors pay the latency once"),
                Mistake(
                    one_tensor_fused,
                    "fused, the message holds all ten tensors; only the latency is paid once",
                ),
                Mistake(fused_first, "the other way round, first without fusion, then with it"),
            ],
        ),
    ],
    hint="10 tensors of 1000 bytes, 4 ranks, 0.5 s, 1000 bytes/s: 20 s and 15.5 s, not {answer}",
)
