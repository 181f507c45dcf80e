"""For all tests."""

import signal

# a shell starts its background jobs deaf to Ctrl-C, and what the tests start and interrupt would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
