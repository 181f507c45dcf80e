"""Exercises of 28_horovod_options."""

from exercises import Case, Exercise, Mistake


def computing(images, compute_32, compute_256):
    return compute_32 + (images - 32) * (compute_256 - compute_32) / 224


def share_of_exchange(images, compute_32, compute_256, exchange):
    return exchange / (computing(images, compute_32, compute_256) + exchange)


def computing_by_exchange(images, compute_32, compute_256, exchange):
    return computing(images, compute_32, compute_256) / exchange


def nothing_fixed(images, compute_32, compute_256, exchange):
    compute = images * (compute_256 - compute_32) / 224
    return compute / (compute + exchange)


def in_proportion_to_256(images, compute_32, compute_256, exchange):
    compute = compute_256 * images / 256
    return compute / (compute + exchange)


def in_proportion_to_32(images, compute_32, compute_256, exchange):
    compute = compute_32 * images / 32
    return compute / (compute + exchange)


def exchange_grows(images, compute_32, compute_256, exchange):
    compute = computing(images, compute_32, compute_256)
    return compute / (compute + exchange * images / 32)


efficiency_at = Exercise(
    cases=[
        Case(
            args=(32, 16, 72, 48),
            answer=0.25,
            mistakes=[
                Mistake(share_of_exchange, "that is the share of the exchange; asked is that of computing"),
                Mistake(computing_by_exchange, "that is computing / exchange; a step takes both"),
                Mistake(nothing_fixed, "a step takes some ms however few images it has; with 32 it computes 16 ms"),
                Mistake(in_proportion_to_256, "two batches are known, and 32 images take more than 32 / 256 of 72 ms"),
            ],
        ),
        Case(
            args=(1024, 16, 72, 88),
            answer=0.75,
            mistakes=[
                Mistake(in_proportion_to_32, "256 images do not take 8 x 16 ms but 72: use both batches"),
                Mistake(exchange_grows, "the bytes do not grow with the batch: there is one gradient a weight"),
            ],
        ),
    ],
    hint="16 ms with 32 images and 72 with 256 are 0.25 ms an image and 8 ms whatever the batch; you have {answer}",
)
