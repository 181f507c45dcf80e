"""A worker or parameter server, as `helpers.cluster.parameter_servers` is as a program, without Keras's extras."""

import sys

from helpers.cluster.lean_import import lean_import


def main():
    """Be the server that TF_CONFIG names."""
    with lean_import():
        from helpers.cluster import parameter_servers
    parameter_servers.main(sys.argv[1:])


if __name__ == "__main__":
    main()
