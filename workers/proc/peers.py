"""Peer credentials of a Unix socket (SO_PEERCRED), and the users that may use the admin socket."""

from __future__ import annotations

import os
import socket
import struct
from typing import Final, Protocol

_CREDENTIALS: Final = struct.Struct("3i")
"""struct ucred: pid, uid, gid."""
_ROOT: Final = 0


class SocketLike(Protocol):
    """A socket, or what an event loop shows of one."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


def peer_ids(sock: SocketLike) -> tuple[int, int]:
    """Pid and uid of the process that connected, as the kernel noted them then; for that one, of the process that has
    listened. Raises OSError."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def peer_uid(sock: SocketLike) -> int:
    """The uid of the process that connected. Raises OSError."""
    return peer_ids(sock)[1]


def may_speak(uid: int) -> bool:
    """Whether that user may administer this agent: its own and root."""
    return uid in (_ROOT, os.geteuid())
