"""The link between the master and the zygote: one msgpack message per packet, file descriptors beside it.

SOCK_SEQPACKET keeps message borders and sends a packet whole or not at all, so there is no partial state on either
side: the zygote uses a blocking socket and needs no loop, the master a non-blocking one through ``loop.add_reader``.
"""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from ipc.link.wire.framing import FrameTooLarge, ProtocolError, decode_message

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["MAX_FDS", "MAX_PACKET_BYTES", "FrameTooLarge", "PacketLink", "ProtocolError"]

MAX_PACKET_BYTES: Final = 64 * 1024
"""Largest message on a packet link, in bytes."""
MAX_FDS: Final = 6
"""Most file descriptors beside one message."""

_FD_BYTES: Final = array.array("i").itemsize

S = TypeVar("S")
R = TypeVar("R")

_Ancillary = list[tuple[int, int, bytes]]


class DescriptorsLost(ProtocolError):
    """A message arrived without its file descriptors: more than MAX_FDS, or the receiver has room for none."""

    def __init__(self, message: object) -> None:
        super().__init__(f"packet carries more than {MAX_FDS} file descriptors, or they could not be opened")
        self.message = message


class PacketLink(Generic[S, R]):
    """Sends S and receives R over one connected AF_UNIX SOCK_SEQPACKET socket, which it owns from then on."""

    def __init__(self, sock: socket.socket, receive_type: TypeForm[R]) -> None:
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_SEQPACKET:
            raise ValueError("a packet link needs an AF_UNIX SOCK_SEQPACKET socket")
        self._sock = sock
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[R] = msgspec.msgpack.Decoder(receive_type)

    def fileno(self) -> int:
        """File descriptor for ``loop.add_reader`` and ``select``; -1 once closed."""
        return self._sock.fileno()

    def send(self, msg: S, fds: Sequence[int] = ()) -> None:
        """Send one message, whole, with copies of ``fds``; the caller keeps (and closes) its own.

        Raises FrameTooLarge, ValueError for more than MAX_FDS, BlockingIOError when the socket is non-blocking and
        full (nothing was sent), BrokenPipeError or ConnectionResetError when the peer is gone.
        """
        payload = self._encoder.encode(msg)
        if len(payload) > MAX_PACKET_BYTES:
            raise FrameTooLarge(f"message of {len(payload)} bytes exceeds the maximum of {MAX_PACKET_BYTES} bytes")
        if len(fds) > MAX_FDS:
            raise ValueError(f"{len(fds)} file descriptors exceed the maximum of {MAX_FDS} beside one message")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self._sock.sendmsg([payload], rights)

    def receive(self) -> tuple[R, list[int]] | None:
        """The next message with its file descriptors (close-on-exec, now the caller's), or None when the peer is gone.

        Raises ProtocolError for a packet that is cut short, carries too many descriptors or is no R; none of its
        descriptors stay open. It is DescriptorsLost when the message itself has come. Raises BlockingIOError when the
        socket is non-blocking and nothing waits.
        """
        try:
            payload, ancillary, flags, _ = self._sock.recvmsg(
                MAX_PACKET_BYTES, socket.CMSG_SPACE(MAX_FDS * _FD_BYTES), socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return None
        fds = _received_fds(ancillary)
        if not payload and not fds:
            return None
        try:
            if flags & socket.MSG_TRUNC:
                raise ProtocolError(f"packet exceeds the maximum of {MAX_PACKET_BYTES} bytes")
            message = decode_message(self._decoder, payload)
            if flags & socket.MSG_CTRUNC:
                raise DescriptorsLost(message)
            return message, fds
        except BaseException:
            _close_all(fds)
            raise

    def close(self) -> None:
        """Close the socket; the peer sees EOF. Again is harmless."""
        self._sock.close()


def _received_fds(ancillary: _Ancillary) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % _FD_BYTES])
    return list(fds)


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
