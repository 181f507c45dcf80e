"""The harness that notebooks, engines, child processes and tests import; the lessons are in `notebooks/`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
