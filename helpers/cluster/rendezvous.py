"""Horovod's rendezvous on one address: where the ranks of Gloo find each other."""

import ipaddress
import socket

LOOPBACK = "127.0.0.1"


def start_rendezvous(found, address, undo):
    """Start a rendezvous server for these engines. Horovod's own RendezvousServer listens on every interface.

    Parameters
    ----------
    found : list of EngineInfo
        In rank order; of each its host and address are read.
    address : str
        IP address of this machine on which to listen.
    undo : contextlib.ExitStack
        It is given what stops the server.

    Returns
    -------
    list of dict
        The environment that brings each engine to its place, in rank order.

    Raises
    ------
    ValueError
        If one of several hosts has its own name at an address that the others cannot reach.
    """
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer
    from horovod.runner.util.threads import in_thread

    check_own_names(found)
    hosts = [engine.host for engine in found]
    slots = ",".join(f"{host}:{hosts.count(host)}" for host in dict.fromkeys(hosts))
    plan = get_host_assignments(parse_hosts(slots), len(found))
    server = RendezvousHTTPServer((address, 0), RendezvousHandler, verbose=0)
    undo.callback(server.server_close)
    server.init(plan)
    in_thread(server.serve_forever)
    undo.callback(server.shutdown)
    shared = create_run_env_vars(address, [""], server.server_address[1])
    return [{**shared, **create_slot_env_vars(slot)} for slot in plan]


def check_address(address):
    """ValueError if `address` is not one IP address of this machine, on which a server can listen."""
    try:
        if ipaddress.ip_address(address).is_unspecified:
            raise ValueError("it means every interface, and the rendezvous has no password")
        with socket.socket() as probe:
            probe.bind((address, 0))
    except (OSError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"address={address!r}: give one IPv4 address of this machine ({why})") from None


def check_own_names(found):
    """ValueError if one of several hosts has its own name at an address that the others cannot reach."""
    addresses = {engine.host: engine.address for engine in found}
    if len(addresses) > 1:
        for host, address in addresses.items():
            check_own_name(host, address)


def check_own_name(host, address):
    """ValueError if a host has its own name at an address that others cannot reach."""
    if address.startswith("127."):
        what = f"in its /etc/hosts, give {host} the address that it has in the network"
        raise ValueError(f"{host} calls itself {address}, where nobody else reaches it: {what}")
