"""Does this environment train on two Horovod ranks? Says what it has; exits with 1 and one sentence if not.

Ends the set-up of `make setup`; in a conda environment run it as `python tools/check_setup.py`.
"""

import platform
import sys
from importlib.metadata import version

from ipyparallel.error import RemoteError

from helpers.cluster.ranks import RankFailure, connect

STEPS, RATE = 3, 0.25


def main():
    try:
        import horovod.tensorflow as hvd
    except Exception as error:  # a Horovod for another TensorFlow fails in many ways
        sys.exit(f"The check failed: horovod.tensorflow does not import ({error}); `make clean setup` builds it anew.")
    print(f"Python {platform.python_version()}, TensorFlow {hvd.tf.__version__}", end="")
    print("".join(f", {name} {version(name)}" for name in ("horovod", "numpy", "ipyparallel", "jupyterlab")))
    print(f"Horovod's controllers: Gloo {yes(hvd.gloo_built())}, MPI {yes(hvd.mpi_built())}", flush=True)
    try:
        with connect(2, cluster=False) as ranks:
            reports = ranks.run(train, STEPS, RATE)
    except (RankFailure, RemoteError) as error:
        sys.exit(f"The check failed, two ranks did not run: {error}")
    wrong = problem(reports)
    if wrong:
        sys.exit(f"The check failed: {wrong}.")
    first, second = reports
    print(f"gradients of ranks 0 and 1 in the last step: {first['gradient']} and {second['gradient']}")
    print(f"weights after {STEPS} steps: {first['weights']} on both, maximum difference {difference(reports):g}")


def train(steps, rate):
    """On a rank: steps of gradient descent towards a target that differs from rank to rank.

    Returns {"size": int, "gradient": this rank's own last gradient, "weights": where it ended}, lists of 3 floats.
    """
    import horovod.tensorflow as hvd
    import tensorflow as tf

    weights = tf.Variable([1.0, 2.0, 3.0])
    target = tf.constant([0.0, 4.0, 1.0]) * (hvd.rank() + 1)
    for _ in range(steps):
        own = 2 * (weights - target)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weights - target) ** 2)
        (averaged,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])  # (it wants a list)
        weights.assign_sub(rate * averaged)
    return {"size": hvd.size(), "gradient": own.numpy().tolist(), "weights": weights.numpy().tolist()}


def problem(reports):
    """What is wrong with what the two ranks report, or None."""
    sizes = [report["size"] for report in reports]
    if sizes != [2, 2]:
        return f"two ranks were started and Horovod reports sizes {sizes}"
    if reports[0]["gradient"] == reports[1]["gradient"]:
        return f"both ranks computed the gradient {reports[0]['gradient']}, so equal weights would show nothing"
    if difference(reports):
        return f"the weights of the two ranks differ by up to {difference(reports):g}: gradients are not exchanged"
    if not any(a != b for a, b in zip(reports[0]["weights"], [1.0, 2.0, 3.0], strict=True)):
        return f"the weights are still {reports[0]['weights']}, as before training"
    return None


def difference(reports):
    """The largest absolute difference between the weights of two reports."""
    return max(abs(a - b) for a, b in zip(reports[0]["weights"], reports[1]["weights"], strict=True))


def yes(flag):
    return "yes" if flag else "no"


if __name__ == "__main__":
    main()
