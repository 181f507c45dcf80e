"""What a process of lesson 22 says about itself: lines of JSON, which its job collects."""

import hashlib
import json
import os
import time


def say(**facts):
    """Print facts as one line of JSON, with the time, the host and, on a rank, "rank" and "size" (ranks)."""
    import horovod.tensorflow as hvd

    who = {"host": os.environ.get("HOROVOD_HOSTNAME", "kernel"), "time": time.time()}
    if hvd.is_initialized():
        who |= {"rank": hvd.rank(), "size": hvd.size()}
    print(json.dumps(who | facts), flush=True)


def fingerprint(variables):
    """Return a short code of the values of variables, a str: equal codes, equal replicas."""
    data = b"".join(variable.numpy().tobytes() for variable in variables)
    return hashlib.sha256(data).hexdigest()[:16]
