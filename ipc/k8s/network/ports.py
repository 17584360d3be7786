"""Ports, as numbers and behind their hosts. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_PORT: Final = 65_535


def join_host_port(host: str, port: int | str) -> str:
    """net.JoinHostPort: IPv6 addresses get brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class PortMapping(msgspec.Struct, frozen=True, kw_only=True):
    """A container's port and where the host publishes it (pkg/kubelet/container/runtime.go, PortMapping)."""

    container_port: int
    host_port: int
    host_ip: str
    protocol: str
