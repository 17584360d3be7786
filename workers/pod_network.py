"""Where a pod's ports are reached, and how sockets come from there."""

from __future__ import annotations

import socket
from typing import Protocol

import msgspec


class PodNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The network namespace of one sandbox."""

    infra_pid: int = 0
    """Pid of its infra container's process in the host's pid namespace; 0: the pod is in the host's network."""
    infra_start_ticks: int = 0
    """When that process was started, in clock ticks since boot (/proc/PID/stat, 22): a reused pid is another one."""
    ip: str = ""
    """The pod's address as its status tells it. Inside the pod's own namespace 127.0.0.1 is reached as well."""


class DialError(Exception):
    """No socket could be made there: the pod has gone, or nobody who could make one answers in time."""


class Dialer(Protocol):
    """Makes sockets; whoever asks connects them."""

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        """A new TCP socket in that network, not blocking, not connected; the caller's. Raises DialError.

        It belongs to the namespace in which it was made, whoever uses it. Each call has a deadline of its own.
        """
