"""A connected stream socket for the running loop, with nothing held back between the kernel and its user.

A transport of asyncio reads ahead and buffers what it writes; when writing fails it drops what was read and not asked
for. Here the kernel's buffers are the only ones, each way ends apart from the other, and what was written is sent
whatever happens to this process.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final

READ_BYTES: Final = 64 * 1024
"""Most that is read at once."""

_RESET: Final = struct.pack("ii", 1, 0)
"""struct linger: a close resets the connection."""


class Duplex:
    """Owns the socket. Each way is for one task at a time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    async def read(self, max_bytes: int = READ_BYTES) -> bytes:
        """Bytes received; empty at the end. Raises ConnectionError when the connection broke off."""
        return await asyncio.get_running_loop().sock_recv(self._sock, max_bytes)

    async def write(self, data: bytes) -> None:
        """Write all of the data; waits while the other side takes none. Raises ConnectionError."""
        await asyncio.get_running_loop().sock_sendall(self._sock, data)

    def end(self) -> None:
        """Nothing more will be written; what comes is still read. Raises OSError when the connection is gone."""
        self._sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close the connection so that the other side (of TCP) sees that it broke off."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._sock.close()

    def close(self) -> None:
        """Close the connection; written bytes are still sent. No task may be reading or writing any more."""
        self._sock.close()
