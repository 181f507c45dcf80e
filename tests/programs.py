"""Python programs in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def said_by(code, **environment):
    """What a Python program prints that runs in the root of the repository. An error if it fails or does not end."""
    command, everything = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=everything, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout
