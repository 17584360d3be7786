"""sd_notify(3), sd_watchdog_enabled(3): tell systemd the service's state; nothing is sent without NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

_MAX_DIGITS: Final = 19


def notify(state: str) -> bool:
    """Send e.g. ``READY=1``; True when it was sent. Never blocks the caller for long: one datagram."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.connect(address)
            sock.sendall(state.encode())
        except OSError:
            return False  # the listener is gone; the agent does not depend on it
    return True


def watchdog_timeout_s(environ: Mapping[str, str], pid: int) -> float:
    """Seconds after which systemd takes the process for hung; 0.0 when it does not watch this one."""
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return 0.0
    text = environ.get("WATCHDOG_USEC", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) / 1_000_000 if is_number else 0.0


class Watchdog:
    """Tells systemd that the process goes on, by nothing but iterations of its loop: one that hangs tells nothing.

    pkg/kubelet/watchdog/watchdog_linux.go asks for the loop's health at half the timeout; here the loop itself tells
    it, at the last iteration before that half is over.
    """

    def __init__(self, timeout_s: float, longest_pause_s: float, send: Callable[[str], object] = notify) -> None:
        """``timeout_s``: 0.0 for nothing to do; ``longest_pause_s``: between two iterations of a loop that is well."""
        self._pause_s = max(0.0, timeout_s / 2 - longest_pause_s)
        self._is_on = timeout_s > 0
        self._send = send
        self._reported_at = float("-inf")

    def iterated(self, mono: float) -> None:
        """The loop has come to the end of an iteration."""
        if self._is_on and mono - self._reported_at >= self._pause_s:
            self._reported_at = mono
            self._send("WATCHDOG=1")
