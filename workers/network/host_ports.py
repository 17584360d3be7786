"""Whether ports of the host can be had. Of the forwarders that Podman has, pasta on a bridge tells nobody that it could
not listen: the pod would run without its ports (podman.portForwarder)."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from typing import Final

from ipc.k8s.network.ports import PortMapping, join_host_port

_TYPES: Final = {"TCP": socket.SOCK_STREAM, "UDP": socket.SOCK_DGRAM}
"""Those that rootless Podman forwards."""
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


def port_problem(ports: Iterable[PortMapping], *, both_families: bool) -> str:
    """Why one of those ports cannot be had now, in the words of Go, in which rootlessport says it; empty when all can.

    Each port is bound for a moment, and nobody listens. ``both_families``: a port without an address is taken in IPv6,
    too, as rootlessport does where there is IPv6.
    """
    return next(filter(None, (_problem(port, both_families) for port in ports)), "")


def _problem(port: PortMapping, both_families: bool) -> str:
    if (type := _TYPES.get(port.protocol)) is None:
        return ""
    if port.host_ip:
        error = _bind(type, port.host_ip, port.host_port)
    else:
        error = _bind(type, "::", port.host_port) if both_families else errno.EAFNOSUPPORT
        error = _bind(type, "0.0.0.0", port.host_port) if error in _NO_IPV6 else error
    if not error:
        return ""
    return f"listen {port.protocol.lower()} {join_host_port(port.host_ip, port.host_port)}: bind: {_words(error)}"


def _bind(type: socket.SocketKind, address: str, port: int) -> int:
    """Number of the error; 0 for none. SO_REUSEADDR as in Go: what is left of closed connections is no reason."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, type) as bound:
            if bound.family is socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
            if type is socket.SOCK_STREAM:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((address, port))
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0


def _words(error: int) -> str:
    return os.strerror(error).lower()
