"""The harness that notebooks, engines, child processes and tests import; the lessons are in `notebooks/`."""

import gc
import os

gc.set_threshold(50_000)  # looking for garbage every 700 objects, Python imports TensorFlow a third slower
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # by itself TensorFlow does so only where it finds AVX-512 VNNI
