"""Addresses and ports of the node (setters.go, NodeAddress and DaemonEndpoints)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from ipc.k8s.nodestatus.node import DaemonEndpoint, NodeAddress, NodeDaemonEndpoints


def node_addresses(ips: Iterable[str], host_name: str) -> tuple[NodeAddress, ...]:
    """IP addresses but for the loopback's, and the name."""
    found = (ip for ip in ips if not ipaddress.ip_address(ip).is_loopback)
    internal = tuple(NodeAddress(type="InternalIP", address=ip) for ip in found)
    return (*internal, NodeAddress(type="Hostname", address=host_name))


def daemon_endpoints(port: int) -> NodeDaemonEndpoints:
    """None while the port is off."""
    return NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port) if port else None)
