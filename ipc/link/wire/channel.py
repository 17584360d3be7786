"""Messages between two processes' event loops, over one private AF_UNIX stream socket.

Works on the socket itself rather than through an asyncio transport, for two reasons: what a dying peer managed to send
is still delivered when our own write to it fails first (a transport drops it), and everything that waits in either
direction is counted against one named maximum.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar, get_args

import msgspec

from ipc.host.text.safe_text import encodable
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from ipc.link.wire.framing import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    FrameDecoder,
    FrameError,
    FrameTooLarge,
    ProtocolError,
    decode_message,
    encode_frame,
)

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["UNSENDABLE", "Channel", "ChannelClosed", "ChannelFull", "FrameTooLarge", "ProtocolError", "Unencodable"]

SEND_HIGH_WATER_BYTES: Final = 1024 * 1024
"""``send`` waits while more than this waits to be written, in bytes."""
MAX_PENDING_BYTES: Final = 32 * 1024 * 1024
"""Most that may wait to be written, in bytes; ``post`` refuses what would exceed it."""
RECEIVE_HIGH_WATER_BYTES: Final = 1024 * 1024
"""Reading pauses while more than this was read and not yet received, in bytes."""
FRAME_COST_BYTES: Final = 64
"""Overhead of a frame that waits to be received, in bytes, counted beside its payload: tiny ones are not free."""
READ_BYTES: Final = 64 * 1024
"""Most that one turn of the loop reads from one channel, in bytes."""
LAZY_S: Final = 0.1
"""How long a lazy message may wait for others that leave with it, in seconds."""
CLOSE_LINGER_S: Final = 1.0
"""How long a closed channel goes on writing what was pending, in seconds, before the rest is dropped."""

_SENT: Final = METERS.counter(metrics.LINK_MESSAGES, "sent")
_SENT_BYTES: Final = METERS.counter(metrics.LINK_BYTES, "sent")
_RECEIVED: Final = METERS.counter(metrics.LINK_MESSAGES, "received")
_RECEIVED_BYTES: Final = METERS.counter(metrics.LINK_BYTES, "received")

S = TypeVar("S")
R = TypeVar("R")


class ChannelFull(Exception):
    """A post would exceed MAX_PENDING_BYTES: the peer has stopped reading. Nothing of it was queued."""


class Unencodable(ValueError):
    """A message holds what has no encoding, such as a lone surrogate or an integer of more than 64 bits. Nothing of it
    was queued."""


UNSENDABLE: Final = (FrameTooLarge, Unencodable)
"""Faults of one message, which leave the link as it was."""


class ChannelClosed(ConnectionError):
    """Nothing can be sent: this end was closed or the peer is gone."""


class Channel(Generic[S, R]):
    """Sends S and receives R (tagged unions of msgspec Structs). Owns its socket; belongs to one event loop."""

    @classmethod
    async def open(
        cls,
        sock: socket.socket,
        send_type: TypeForm[S],
        receive_type: TypeForm[R],
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> Channel[S, R]:
        """Take over a connected socket. Raises ValueError when it is of another kind; it then stays the caller's."""
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
            raise ValueError("a channel needs an AF_UNIX SOCK_STREAM socket")
        if not 0 < max_frame_bytes <= MAX_PENDING_BYTES - HEADER_BYTES:
            raise ValueError(f"max_frame_bytes must be within 1..{MAX_PENDING_BYTES - HEADER_BYTES}")
        sock.setblocking(False)
        return cls(sock, send_type, receive_type, max_frame_bytes, asyncio.get_running_loop())

    def __init__(
        self,
        sock: socket.socket,
        send_type: TypeForm[S],
        receive_type: TypeForm[R],
        max_frame_bytes: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Not for callers: use ``open``."""
        self._sock = sock
        self._loop = loop
        self._max_frame_bytes = max_frame_bytes
        self._send_types = frozenset(get_args(send_type) or (send_type,))
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[R] = msgspec.msgpack.Decoder(receive_type)
        self._cutter = FrameDecoder(max_frame_bytes)

        self._outgoing = bytearray()
        self._flush_due = False
        self._lazy_flush: asyncio.TimerHandle | None = None
        """Set while what is pending may wait for more."""
        self._writing = False
        self._peer_gone = False
        self._send_turn = asyncio.Lock()
        self._room = asyncio.Event()

        self._frames: deque[bytes] = deque()
        self._frames_bytes = 0
        self._reading = False
        self._ended = False
        self._failure = ""
        self._arrival = asyncio.Event()

        self._closed = False
        self._linger: asyncio.TimerHandle | None = None
        self._released = asyncio.Event()
        self._resume_reading()

    @property
    def closed(self) -> bool:
        """True from ``close`` or a ProtocolError on. EOF from the peer alone does not close this end."""
        return self._closed

    @property
    def pending_bytes(self) -> int:
        """Bytes that were sent or posted and have not reached the kernel yet."""
        return len(self._outgoing)

    async def send(self, msg: S, *, lazy: bool = False) -> None:
        """Queue one message, after waiting until less than SEND_HIGH_WATER_BYTES is pending; senders go in turn. A
        ``lazy`` one leaves with the next that is not, or after LAZY_S: each write wakes the peer.

        Cancelling it while it waits sends nothing of the message. Raises FrameTooLarge, Unencodable, ChannelClosed,
        and TypeError for a message that does not belong to this link.
        """
        frame = self._encode(msg)
        async with self._send_turn:
            await self.room()
            self._enqueue(frame, lazy=lazy)

    @property
    def has_room(self) -> bool:
        """Whether a ``send`` would not wait."""
        return self.pending_bytes <= SEND_HIGH_WATER_BYTES or self._closed

    async def room(self) -> None:
        """Wait until a ``send`` would not."""
        while not self.has_room:
            self._room.clear()
            await self._room.wait()

    def post(self, msg: S, *, lazy: bool = False) -> None:
        """Queue one message without waiting; it may overtake a ``send`` that still waits. ``lazy`` as of ``send``.

        All posts of one turn of the loop leave in one write. Raises ChannelFull, and what ``send`` raises.
        """
        frame = self._encode(msg)
        if self.pending_bytes + len(frame) > MAX_PENDING_BYTES:
            raise ChannelFull(f"{self.pending_bytes} bytes are pending, the maximum is {MAX_PENDING_BYTES}")
        self._enqueue(frame, lazy=lazy)

    async def receive(self) -> R | None:
        """The next message; None when the peer has closed (or died) between messages, or this end was closed.

        Raises ProtocolError for anything that is no R, after the good messages before it; the channel is then closed
        and every later call raises again.
        """
        while not self._frames and not self._ended:
            self._arrival.clear()
            await self._arrival.wait()
        if self._frames:
            return self._take()
        if self._failure:
            raise ProtocolError(self._failure)
        return None

    def __aiter__(self) -> Channel[S, R]:
        return self

    async def __anext__(self) -> R:
        msg = await self.receive()
        if msg is None:
            raise StopAsyncIteration
        return msg

    def close(self) -> None:
        """Receive no more, write what is pending for at most CLOSE_LINGER_S, then close. Again is harmless."""
        self._drop_frames()
        if self._closed:
            return
        self._closed = True
        self._end_reading()
        self._room.set()
        if self._outgoing:
            self._linger = self._loop.call_later(CLOSE_LINGER_S, self._release)
            self._flush_soon()
        else:
            self._release()

    async def wait_closed(self) -> None:
        """Wait until the socket is closed: at most CLOSE_LINGER_S after ``close``."""
        await self._released.wait()

    # --- outgoing ---

    def _encode(self, msg: S) -> bytes:
        if type(msg) not in self._send_types:
            raise TypeError(f"{type(msg).__name__} does not belong to this link")
        self._refuse_if_closed()
        try:
            payload = self._encoder.encode(msg)
        except UnicodeEncodeError:  # a text that is no Unicode must not end the process that passes it on
            payload = self._encoder.encode(encodable(msg))
        except (OverflowError, RecursionError) as error:
            raise Unencodable(f"{type(msg).__name__}: {type(error).__name__}") from error
        return encode_frame(payload, self._max_frame_bytes)

    def _refuse_if_closed(self) -> None:
        if self._closed or self._peer_gone:
            raise ChannelClosed("the channel is closed" if self._closed else "the peer is gone")

    def _enqueue(self, frame: bytes, *, lazy: bool) -> None:
        self._refuse_if_closed()
        self._outgoing += frame
        _SENT.inc()
        _SENT_BYTES.inc(len(frame))
        if not lazy:
            self._flush_soon()
        elif not self._flush_due and not self._writing and self._lazy_flush is None:
            self._lazy_flush = self._loop.call_later(LAZY_S, self._write)

    def _flush_soon(self) -> None:
        if not self._flush_due and not self._writing:
            self._flush_due = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._flush_due = False
        self._forget_lazy_flush()
        if not self._outgoing:
            return
        try:
            written = self._sock.send(self._outgoing, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            # Only writing ends here: what the peer sent before it went is still to be read.
            self._lose_peer()
            return
        del self._outgoing[:written]
        self._after_write()

    def _forget_lazy_flush(self) -> None:
        if self._lazy_flush is not None:
            self._lazy_flush.cancel()
            self._lazy_flush = None

    def _after_write(self) -> None:
        if self.pending_bytes <= SEND_HIGH_WATER_BYTES:
            self._room.set()
        if self._outgoing and not self._writing:
            self._loop.add_writer(self._sock.fileno(), self._write)
            self._writing = True
        elif not self._outgoing:
            self._stop_writing()

    def _stop_writing(self) -> None:
        if self._writing:
            self._loop.remove_writer(self._sock.fileno())
            self._writing = False
        if self._closed:
            self._release()

    def _lose_peer(self) -> None:
        self._peer_gone = True
        self._outgoing.clear()
        self._room.set()
        self._stop_writing()

    # --- incoming ---

    def _read(self) -> None:
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""  # Reset: the peer went without reading everything. It is gone either way.
        try:
            if data:
                self._keep(self._cutter.feed(data))
            else:
                self._cutter.eof()
        except FrameError as error:
            self._keep(error.frames)
            self._fail(str(error))
            return
        if not data:
            self._end_reading()
            self._lose_peer()

    def _keep(self, frames: Sequence[bytes]) -> None:
        self._frames.extend(frames)
        self._frames_bytes += sum(map(len, frames)) + FRAME_COST_BYTES * len(frames)
        if self._frames_bytes > RECEIVE_HIGH_WATER_BYTES:
            self._pause_reading()
        if frames:
            self._arrival.set()

    def _take(self) -> R:
        payload = self._frames.popleft()
        self._frames_bytes -= len(payload) + FRAME_COST_BYTES
        _RECEIVED.inc()
        _RECEIVED_BYTES.inc(len(payload) + HEADER_BYTES)
        if self._frames_bytes <= RECEIVE_HIGH_WATER_BYTES and not self._ended:
            self._resume_reading()
        try:
            return decode_message(self._decoder, payload)
        except ProtocolError as error:
            self._drop_frames()
            self._fail(str(error))
            raise

    def _fail(self, reason: str) -> None:
        """The peer cannot be trusted to frame anything any more: nothing is written to it either."""
        self._failure = reason
        self._closed = True
        self._end_reading()
        self._lose_peer()

    def _drop_frames(self) -> None:
        self._frames.clear()
        self._frames_bytes = 0

    def _end_reading(self) -> None:
        self._ended = True
        self._pause_reading()
        self._arrival.set()

    def _pause_reading(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._sock.fileno())
            self._reading = False

    def _resume_reading(self) -> None:
        if not self._reading:
            self._loop.add_reader(self._sock.fileno(), self._read)
            self._reading = True

    def _release(self) -> None:
        """Close the socket. Every way to an end comes through here, and only the first time counts."""
        self._forget_lazy_flush()
        if self._linger is not None:
            self._linger.cancel()
        if self._writing:
            self._loop.remove_writer(self._sock.fileno())
            self._writing = False
        self._outgoing.clear()
        self._sock.close()
        self._released.set()
