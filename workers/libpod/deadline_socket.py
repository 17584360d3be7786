"""Sockets of one client with a deadline for each exchange, which another thread can also end.

A socket's own timeout is for one receive: an answer that comes byte by byte never runs into it. And a thread that
blocks in a receive can only be ended through its socket.
"""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Collection
from typing import Any

from ipc.host import clock


class DeadlineSocket(socket.socket):
    """A socket whose timeout, once set, is the time for everything that is received from then on."""

    thread = 0
    """Which thread sent last: the exchange is its."""
    _until: float | None = None

    def settimeout(self, value: float | None) -> None:
        """Seconds from now; None for ever."""
        self._until = None if value is None else clock.monotonic() + value
        super().settimeout(value)

    def sendall(self, *args: Any) -> None:
        self.thread = threading.get_ident()
        super().sendall(*args)

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Raises TimeoutError at the deadline."""
        if self._until is not None:
            left_s = self._until - clock.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left_s)
        return super().recv_into(*args, **kwargs)


class DeadlineSockets:
    """All wires of a client, as long as they are open."""

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[DeadlineSocket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def adopt(self, connected: socket.socket, timeout_s: float | None) -> DeadlineSocket:
        """Takes the place of a connected socket."""
        sock = DeadlineSocket(fileno=connected.detach())
        sock.settimeout(timeout_s)
        with self._lock:
            self._sockets.add(sock)
        return sock

    def break_off(self, threads: Collection[int]) -> None:
        """End the exchanges of these threads: they find their connection broken."""
        with self._lock:
            sockets = [sock for sock in self._sockets if sock.thread in threads]
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed, or the other side was quicker
