"""Which of a sandbox's addresses are the pod's. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def sort_pod_ips(node_ip: str, addresses: Iterable[str]) -> tuple[str, ...]:
    """At most one of each family, the node's family first (pkg/kubelet/kubelet_pods.go, sortPodIPs).

    Without a node's address that is IPv4. What is no address at all is left out.
    """
    families = (6, 4) if _version(node_ip) == 6 else (4, 6)
    known = tuple(addresses)
    first = (next((address for address in known if _version(address) == family), "") for family in families)
    return tuple(address for address in first if address)


def _version(address: str) -> int:
    """4 or 6; 0 for no address."""
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return 0
