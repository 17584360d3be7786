"""Addresses of a sandbox that are the pod's, and their order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ipc.host.text.ip_address import parse_ip


def sort_pod_ips(ips: Iterable[str], node_ip: str = "") -> tuple[str, ...]:
    """The first one of each address family, that of the node's address first, IPv4 when the node's is not known.

    Source: sortPodIPs (pkg/kubelet/kubelet_pods.go). What is no address does not count.
    """
    primary = _family(node_ip) or 4
    by_family: dict[int, str] = {}
    for ip in ips:
        by_family.setdefault(_family(ip), ip)
    return tuple(by_family[family] for family in (primary, 10 - primary) if family in by_family)


@lru_cache(maxsize=1024)
def _family(ip: str) -> int:
    """4 or 6; 0 for what is no address."""
    try:
        return parse_ip(ip).version
    except ValueError:
        return 0
