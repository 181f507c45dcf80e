"""Waiting for what other processes do."""

import time


def wait_for(condition, seconds=60):
    """What condition() gives as soon as it is true; AssertionError when that takes longer."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.2)
    return found
