"""An ipyparallel engine that has imported TensorFlow and Horovod before it registers, while the controller starts."""

import gc

from ipyparallel.engine.app import IPEngine


def main():
    """Be an engine of the cluster that the environment names."""
    gc.disable()  # a quarter of the import would be looking for garbage
    import horovod.tensorflow  # noqa: F401

    gc.enable()
    IPEngine.launch_instance()


if __name__ == "__main__":
    main()
