"""Several streams in one WebSocket, as kubectl and the kubelet have it: every message begins with its channel's number.

The subprotocol is ``v5.channel.k8s.io`` (apimachinery pkg/util/remotecommand, constants.go), which is
``v4.channel.k8s.io`` and a way to end one channel while the others go on: channel 255, whose payload is the number of
the channel that ends. Pure, apart from `ChannelSocket`, which is the same for both ends of a connection.
"""

from __future__ import annotations

import enum
from typing import Any, Final, Protocol

import msgspec

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
"""A version without half-closing: whoever has sent all of its input cannot say so."""
PROTOCOLS: Final = (V5, V4)
"""Protocols that are spoken, best first."""

MAX_MESSAGE_BYTES: Final = 256 * 1024
"""Largest message that is taken."""
CHUNK_BYTES: Final = 32 * 1024
"""Most of a stream that is sent in one message, and read at once for it."""
MAX_SIZE_CELLS: Final = 0xFFFF
"""Widest and highest terminal: the kernel's struct winsize has 16 bits for each."""

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
"""WebSocket opcodes (RFC 6455, 5.2), as aiohttp numbers its messages. It is not imported for them: processes without an
HTTP server need the other names of this module, and would have 10 MiB more."""
OK: Final = 1000
GOING_AWAY: Final = 1001
"""WebSocket close codes (RFC 6455, 7.4.1)."""

SUCCESS: Final = "Success"
NON_ZERO_EXIT_CODE: Final = "NonZeroExitCode"
"""Reason of the status of a command that failed (remotecommand constants.go, NonZeroExitCodeReason)."""
EXIT_CODE_CAUSE: Final = "ExitCode"
MAX_EXIT_CODE_DIGITS: Final = 10
"""Reason of the cause whose message is the exit code (ExitCodeCauseType)."""
INTERNAL_ERROR: Final = "InternalError"


class Channel(enum.IntEnum):
    """Numbers of the streams of exec and attach (remotecommand constants.go, StreamStdIn and so on)."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    """One message at the end: a v1 Status."""
    RESIZE = 4
    CLOSE = 255


class PortChannel(enum.IntEnum):
    """Channels of port-forward: for one port the data, both ways, and an error as text."""

    DATA = 0
    ERROR = 1


class TerminalSize(msgspec.Struct, frozen=True, rename="pascal"):
    """client-go tools/remotecommand, TerminalSize: in character cells."""

    width: int
    height: int


class Message(msgspec.Struct, frozen=True):
    """A piece of a stream, or the end of one."""

    channel: int
    data: bytes = b""
    ends: bool = False


class StatusCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """meta/v1 StatusCause."""

    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, frozen=True, omit_defaults=True):
    causes: tuple[StatusCause, ...] = ()


class StreamStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a command ended: the v1 Status on the error channel."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    status: str
    message: str = ""
    reason: str = ""
    details: _Details | None = None

    def exit_code(self) -> int | None:
        """The command's; None when it is not known, because something else went wrong."""
        if self.status == SUCCESS:
            return 0
        causes = self.details.causes if self.details is not None else ()
        found = next((cause.message for cause in causes if cause.reason == EXIT_CODE_CAUSE), "")
        is_number = found.isascii() and found.isdigit() and len(found) <= MAX_EXIT_CODE_DIGITS
        return int(found) if self.reason == NON_ZERO_EXIT_CODE and is_number else None


def exit_status(code: int) -> StreamStatus:
    """The status of a command that has ended (cri-streaming pkg/streaming/remotecommand, exec.go)."""
    if code == 0:
        return StreamStatus(status=SUCCESS)
    return StreamStatus(
        status="Failure",
        message=f"command terminated with non-zero exit code: {code}",
        reason=NON_ZERO_EXIT_CODE,
        details=_Details((StatusCause(EXIT_CODE_CAUSE, str(code)),)),
    )


def failure_status(message: str) -> StreamStatus:
    """Status of a command whose end is not known."""
    return StreamStatus(status="Failure", message=message, reason=INTERNAL_ERROR)


def encode_status(status: StreamStatus) -> bytes:
    """``metadata`` is always there: clients look for it."""
    return msgspec.json.encode({"metadata": {}} | msgspec.to_builtins(status))


def decode_status(data: bytes) -> StreamStatus:
    """Raises ValueError."""
    return msgspec.json.decode(data, type=StreamStatus)


def encode_size(size: TerminalSize) -> bytes:
    """Encode a terminal's size for the resize channel."""
    return msgspec.json.encode(size)


def decode_size(data: bytes) -> TerminalSize:
    """Raises ValueError, also for a terminal without cells."""
    size = msgspec.json.decode(data, type=TerminalSize)
    if not (0 < size.width <= MAX_SIZE_CELLS and 0 < size.height <= MAX_SIZE_CELLS):
        raise ValueError(f"a terminal of {size.width} times {size.height}")
    return size


def decode_message(data: bytes) -> Message:
    """Raises ValueError for one without a channel, and for an end of nothing."""
    if not data or (data[0] == Channel.CLOSE and len(data) != 2):
        raise ValueError("a message without a channel")
    if data[0] == Channel.CLOSE:
        return Message(data[1], ends=True)
    return Message(data[0], data[1:])


class _Received(Protocol):
    @property
    def type(self) -> int: ...
    @property
    def data(self) -> Any: ...


class WebSocket(Protocol):
    """Common part of both ends: aiohttp's in the server, the command line's own."""

    async def receive(self) -> _Received: ...
    async def send_bytes(self, data: bytes) -> None: ...
    async def ping(self) -> None: ...


class ChannelSocket:
    """The channels of one WebSocket. Bounded both ways: sending waits for a slow peer, what is not received stays with
    the peer. Sending raises ConnectionError when the peer is gone."""

    def __init__(self, socket: WebSocket, protocol: str) -> None:
        self._socket = socket
        self.half_closes = protocol == V5

    async def send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + data)

    async def end(self, channel: int) -> None:
        """End that channel. Nothing is sent where the protocol has no message for it."""
        if self.half_closes:
            await self._socket.send_bytes(bytes((Channel.CLOSE, channel)))

    async def receive(self) -> Message | None:
        """None when the peer has closed the connection, is gone, or does not keep to the protocol."""
        received = await self._socket.receive()
        if received.type == TEXT:
            return _decoded(received.data.encode())
        return _decoded(received.data) if received.type == BINARY else None

    async def ping(self) -> None:
        """Raises ConnectionError when the peer is gone; waits for no answer."""
        await self._socket.ping()


def _decoded(data: bytes) -> Message | None:
    try:
        return decode_message(data)
    except ValueError:
        return None
