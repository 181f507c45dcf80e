"""Several hosts on one Linux machine: names, links of a given bandwidth, ssh and Slurm. See README.md."""

from laptop_cluster.hosts import Hosts, hosts
from laptop_cluster.namespaces import HostsUnavailable
from laptop_cluster.slurm import Slurm

__all__ = ["Hosts", "HostsUnavailable", "Slurm", "hosts"]
