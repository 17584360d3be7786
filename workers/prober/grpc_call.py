"""One unary gRPC call over HTTP/2 without TLS, on a connected socket.

The protocol is gRPC over HTTP/2 (grpc/grpc, doc/PROTOCOL-HTTP2.md); texts of errors are those of grpc-go. The HTTP/2
itself is the h2 library's.
"""

from __future__ import annotations

import asyncio
import http
import re
import socket
from collections.abc import Iterable, Mapping
from typing import Final, Self
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import msgspec
from h2.errors import ErrorCodes

from ipc.host.text.gofmt import head, quoted

MAX_MESSAGE_BYTES: Final = 10 * 1024
"""Largest answer that is taken, in bytes; a health answer has two."""
_CHUNK_BYTES: Final = 16 * 1024
_PREFIX_BYTES: Final = 5
"""Before each message: a byte that says whether it is compressed, and its length."""

CODES: Final = (
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
)
"""Names of grpc-status, as grpc-go prints them."""
_OF_HTTP_STATUS: Final[Mapping[str, str]] = {
    "400": "Internal",
    "401": "Unauthenticated",
    "403": "PermissionDenied",
    "404": "Unimplemented",
    "429": "Unavailable",
    "502": "Unavailable",
    "503": "Unavailable",
    "504": "Unavailable",
}
"""grpc/grpc, doc/http-grpc-status-mapping.md; any other is Unknown."""
_PHRASES: Final = {str(status.value): status.phrase for status in http.HTTPStatus}
_OF_RESET: Final[Mapping[int, str]] = {
    ErrorCodes.REFUSED_STREAM: "Unavailable",
    ErrorCodes.CANCEL: "Canceled",
    ErrorCodes.ENHANCE_YOUR_CALM: "ResourceExhausted",
    ErrorCodes.INADEQUATE_SECURITY: "PermissionDenied",
}
"""doc/PROTOCOL-HTTP2.md, Errors; any other is Internal."""
_CONFIG: Final = h2.config.H2Configuration(client_side=True, header_encoding=False)
"""Headers as bytes: the library lets them be anything, and fails without words over what is no text."""
_CODE: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_MAX_CODE: Final = 2**31 - 1
_SHOWN_CHARS: Final = 64
"""Characters that a message shows of a status that is none."""


class RpcError(Exception):
    """The call has failed; ``code`` is one of CODES."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {message}")
        self.code = code
        self.message = message


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One unary call: its target, deadline and request."""

    authority: str
    path: str
    user_agent: str
    timeout_ms: int
    """How long the caller waits, for the server to know."""
    request: bytes

    def headers(self) -> list[tuple[str, str]]:
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", self.path),
            (":authority", self.authority),
            ("content-type", "application/grpc"),
            ("user-agent", self.user_agent),
            ("te", "trailers"),
            ("grpc-timeout", f"{self.timeout_ms}m"),
        ]


class Connection:
    """An HTTP/2 connection for one call. It owns the socket; callers set the deadlines."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._h2 = h2.connection.H2Connection(_CONFIG)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    async def open(self) -> None:
        """Return when the server has said its settings: then it speaks HTTP/2. Raises OSError, H2Error."""
        self._h2.initiate_connection()
        while not any(isinstance(event, h2.events.RemoteSettingsChanged) for event in await self._receive()):
            pass

    async def call(self, call: Call) -> bytes:
        """The answer's message. Raises RpcError."""
        answer = _Answer()
        try:
            stream = self._h2.get_next_available_stream_id()
            self._h2.send_headers(stream, call.headers())
            self._h2.send_data(stream, _prefixed(call.request), end_stream=True)
            while not answer.complete:
                for event in await self._receive():
                    answer.hear(event)
        except (OSError, h2.exceptions.H2Error) as error:
            raise RpcError("Unavailable", f"error reading from server: {error_text(error)}") from error
        return answer.message()

    async def _receive(self) -> list[h2.events.Event]:
        """Send what there is to send, and wait."""
        loop = asyncio.get_running_loop()
        if unsent := self._h2.data_to_send():
            await loop.sock_sendall(self._socket, unsent)
        received = await loop.sock_recv(self._socket, _CHUNK_BYTES)
        if not received:
            raise ConnectionResetError("EOF")
        return self._h2.receive_data(received)


class _Answer:
    """Answer to a call, as far as it was received."""

    def __init__(self) -> None:
        self.complete = False
        self._headers: dict[str, str] = {}
        self._data = bytearray()

    def hear(self, event: h2.events.Event) -> None:
        """Raises RpcError when nothing good can follow."""
        match event:
            case h2.events.ResponseReceived():
                self._headers = _texts(event.headers)
                _check_headers(self._headers)
            case h2.events.DataReceived():
                self._data += event.data or b""
                if len(self._data) > _PREFIX_BYTES + MAX_MESSAGE_BYTES:
                    raise RpcError("ResourceExhausted", f"grpc: received message larger than max ({MAX_MESSAGE_BYTES})")
            case h2.events.TrailersReceived():
                self._headers |= _texts(event.headers)
            case h2.events.StreamEnded():
                self.complete = True
            case h2.events.StreamReset():
                raise _reset(event.error_code or 0)
            case h2.events.ConnectionTerminated():
                raise RpcError("Unavailable", "closing transport due to: received GOAWAY")

    def message(self) -> bytes:
        """Raises RpcError unless the server says OK."""
        status = self._headers.get("grpc-status")
        if status is None:
            raise RpcError("Internal", "server closed the stream without sending trailers")
        if status != "0":
            raise RpcError(_code_name(status), unquote(self._headers.get("grpc-message", "")))
        return _unprefixed(self._data)


def error_text(error: Exception) -> str:
    """Words of an error as grpc-go has them, as far as people know them."""
    if isinstance(error, ConnectionResetError) and error.errno is not None:
        return "read: connection reset by peer"
    return str(error) or type(error).__name__


def _texts(headers: Iterable[tuple[str | bytes, str | bytes]]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in headers}


def _text(header: str | bytes) -> str:
    return header if isinstance(header, str) else head(header)


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raises RpcError when this is no answer of a gRPC server."""
    status, kind = headers[":status"], headers.get("content-type", "")
    if status != "200":
        code = _OF_HTTP_STATUS.get(status, "Unknown")
        raise RpcError(code, f"unexpected HTTP status code received from server: {_status_text(status)}")
    if not kind.startswith("application/grpc"):
        raise RpcError("Unknown", f"transport: received unexpected content-type {quoted(kind)}")


def _status_text(status: str) -> str:
    phrase = _PHRASES.get(status)
    return status[:_SHOWN_CHARS] if phrase is None else f"{status} ({phrase})"


def _reset(code: int) -> RpcError:
    name = ErrorCodes(code).name if code in tuple(ErrorCodes) else str(code)
    return RpcError(_OF_RESET.get(code, "Internal"), f"stream terminated by RST_STREAM with error code: {name}")


def _code_name(status: str) -> str:
    """Raises RpcError for what is no number of 32 bits."""
    number = int(status) if _CODE.fullmatch(status) else _MAX_CODE + 1
    if number > _MAX_CODE:
        raise RpcError("Internal", f"transport: malformed grpc-status: {quoted(status[:_SHOWN_CHARS])}")
    return CODES[number] if number < len(CODES) else f"Code({number})"


def _prefixed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(_PREFIX_BYTES - 1, "big") + message


def _unprefixed(data: bytearray) -> bytes:
    """Raises RpcError unless it is one whole message that is not compressed."""
    if len(data) < _PREFIX_BYTES or len(data) != _PREFIX_BYTES + int.from_bytes(data[1:_PREFIX_BYTES], "big"):
        raise RpcError("Internal", "unexpected EOF")
    if data[0]:
        raise RpcError("Internal", "grpc: compressed flag set with identity or empty encoding")
    return bytes(data[_PREFIX_BYTES:])
