"""The network of the hosts: a switch, a link of each host to it, and one of this machine, if root makes them."""

import ipaddress
import json
import os
from pathlib import Path

from laptop_cluster.namespaces import HostsUnavailable, call

FIRST_HOST = 10  # its place among the addresses of the network; this machine has the first


class Network:
    """Addresses for n hosts, and the links.

    Parameters
    ----------
    switch : Namespaces
        Where the bridge is.
    within : ipaddress.IPv4Network
        The first /24 of it is used that no route of this machine touches.
    n : int
        Hosts.

    Attributes
    ----------
    addresses : list of str
        Of the hosts.
    machine : str or None
        This machine's address in their network; None if this machine is not in it.
    link : str or None
        The name of this machine's interface in their network.
    """

    def __init__(self, switch, within, n):
        self._switch, self.link, self.machine = switch, None, None
        subnet = next(within.subnets(new_prefix=24))  # of an ordinary user: nobody else sees this network
        if os.geteuid() == 0:
            subnet = self._join(within)
        addresses = [str(address) for address in subnet.hosts()]
        self.addresses = addresses[FIRST_HOST : FIRST_HOST + n]
        if self.link:
            self.machine = addresses[0]
            call("ip", "address", "add", f"{self.machine}/24", "dev", self.link)
            call("ip", "link", "set", self.link, "up")
            switch.call("ip", "link", "set", "machine", "master", "switch", "up")

    def _join(self, within):
        """Link this machine to the switch, under a name that nobody has; returns a network that nobody uses."""
        routes = json.loads(call("ip", "-j", "-4", "route", "show", "table", "all"))
        taken = [ipaddress.ip_network(route["dst"]) for route in routes if route["dst"] != "default"]
        for number, subnet in enumerate(within.subnets(new_prefix=24)):
            if any(subnet.overlaps(other) for other in taken):
                continue
            link = f"laptop{number}"
            peer = ["type", "veth", "peer", "name", "machine", "netns", self._switch.first.pid]
            try:
                call("ip", "link", "add", link, *peer)
            except HostsUnavailable:  # somebody else has just taken this number
                continue
            self.link = link
            return subnet
        raise HostsUnavailable(f"no /24 of {within} is free: give hosts(within=...) a range that nobody uses")

    def connect(self, i, name, host):
        """Link the i-th host to the switch: `lan0` there, the host's name at the switch."""
        self._switch.call(
            "ip", "link", "add", name, "type", "veth", "peer", "name", "lan0", "netns", host.first.pid
        )  # fmt: skip
        self._switch.call("ip", "link", "set", name, "master", "switch", "up")
        host.call("ip", "address", "add", f"{self.addresses[i]}/24", "dev", "lan0")
        host.call("ip", "link", "set", "lan0", "up")

    def plug(self, name, up):
        """Put in or pull the cable of a host, at the switch."""
        self._switch.call("ip", "link", "set", name, "up" if up else "down")

    def gone(self):
        """Whether the kernel has removed this machine's link."""
        return self.link is None or not Path("/sys/class/net", self.link).exists()


def limit(host, mbit):
    """Let a host send at most so many Mbit/s; None: as fast as the machine can."""
    queue = ["pfifo"]
    if mbit is not None:
        burst = max(16_000, int(mbit * 250))  # bytes; those of 2 ms
        queue = ["tbf", "rate", f"{mbit}mbit", "burst", burst, "latency", "50ms"]
    host.call("tc", "qdisc", "replace", "dev", "lan0", "root", *queue)
