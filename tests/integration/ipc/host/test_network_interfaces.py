"""This host's own addresses, asked of the kernel."""

from __future__ import annotations

import os
import socket

from ipc.host.network_addresses import (
    addresses_of,
    node_ips,
)

V4, V6 = socket.AF_INET, socket.AF_INET6


def test_this_hosts_addresses_are_its_interfaces() -> None:
    assert set(node_ips()) <= set(addresses_of(os.getpid()))
