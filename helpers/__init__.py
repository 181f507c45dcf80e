"""The harness that notebooks, engines, child processes and tests import; the lessons are in `notebooks/`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # by itself TensorFlow does so only where it finds AVX-512 VNNI
