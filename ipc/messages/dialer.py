"""Master and dialer; and, as packets, the dialer and whoever dials into a pod."""

from __future__ import annotations

from ipc.messages.base import Message, Ready, Shutdown

DialerCommand = Shutdown
DialerReport = Ready


class MakeSocket(Message, frozen=True, kw_only=True):
    """A TCP socket in the network namespace of that process, please."""

    number: int
    """Of the request, on its connection."""
    pid: int
    start_ticks: int
    """When the process was started, in clock ticks since boot: if another one has its pid, that is refused."""
    family: int
    """``AF_INET`` or ``AF_INET6``."""
    repeats: int = 0
    """On how many connections it was asked before, which ended without an answer."""


class SocketMade(Message, frozen=True, kw_only=True):
    """The socket rides along."""

    number: int


class SocketRefused(Message, frozen=True, kw_only=True):
    number: int
    message: str


DialerAnswer = SocketMade | SocketRefused
