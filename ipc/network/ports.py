"""Ports, as numbers and behind their hosts. Pure."""

from __future__ import annotations

from typing import Final

MAX_PORT: Final = 65_535


def join_host_port(host: str, port: int | str) -> str:
    """net.JoinHostPort: IPv6 addresses get brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
