"""For all tests."""

import signal

import cloudpickle
import pytest
from hypothesis import settings

# a shell starts its background jobs deaf to Ctrl-C, and what the tests start and interrupt would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says something about the machine, and nothing about the code
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="module", autouse=True)
def functions_of_a_test_file_travel(request):
    """Engines cannot import it."""
    cloudpickle.register_pickle_by_value(request.module)
