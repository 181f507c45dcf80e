"""An ipyparallel engine that has imported TensorFlow and Horovod before it registers, while the controller starts."""

from ipyparallel.engine.app import IPEngine

from helpers.cluster.lean_import import lean_import


def main():
    """Be an engine of the cluster that the environment names."""
    with lean_import():
        import horovod.tensorflow  # noqa: F401

    IPEngine.launch_instance()


if __name__ == "__main__":
    main()
