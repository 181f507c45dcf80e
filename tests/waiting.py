"""Waiting for what other processes do."""

import time


def wait_for(condition, seconds=200, every=0.2):
    """What condition() gives as soon as it is true, asked `every` so many seconds. AssertionError if it is never so."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(every)
    return found
