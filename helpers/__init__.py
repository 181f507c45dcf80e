"""What lessons, ranks and programs import; the lessons themselves are in `notebooks/`."""

import os

# TensorFlow reads both when it is imported. Its errors are shown, its remarks on the way are not.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# By itself TensorFlow uses oneDNN only where it finds AVX-512 VNNI.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
