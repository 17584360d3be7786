"""Messages of the master and the dialer; and packets between the dialer and the processes that dial into a pod."""

from __future__ import annotations

from ipc.link.messages.base import Message, Ready, Shutdown

DialerCommand = Shutdown
DialerReport = Ready


class MakeSocket(Message, frozen=True, kw_only=True):
    """Request for a TCP socket in the network namespace of that process."""

    number: int
    """Number of the request, on its connection."""
    pid: int
    start_ticks: int
    """Start of the process in clock ticks since boot: the request is refused when another process has its pid."""
    family: int
    """``AF_INET`` or ``AF_INET6``."""
    repeats: int = 0
    """Number of earlier connections on which it was sent and that ended without an answer."""


class SocketMade(Message, frozen=True, kw_only=True):
    """Answer that carries the socket."""

    number: int


class SocketRefused(Message, frozen=True, kw_only=True):
    number: int
    message: str


DialerAnswer = SocketMade | SocketRefused
