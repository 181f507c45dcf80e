"""TensorFlow for a process that computes: without what Keras imports only in case somebody uses it."""

import gc
import sys
from contextlib import contextmanager

EXTRAS = ["matplotlib", "sklearn"]  # for keras.visualization and keras.wrappers


@contextmanager
def lean_import():
    """Hide matplotlib and scikit-learn while TensorFlow is imported, and collect no garbage meanwhile.

    Keras imports both if it finds them. Without them and without looking for garbage an engine starts with 4.0 instead
    of 5.2 seconds of computing (2026-11-26, a virtual machine), and each rank and server saves that. What has been
    imported before stays, and afterwards both can be imported as always; only `keras.visualization` and
    `keras.wrappers` do without them in this process.
    """
    hidden = [name for name in EXTRAS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # None: import raises ImportError
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        for name in hidden:
            del sys.modules[name]
