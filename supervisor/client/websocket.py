"""The admin socket's client for what goes both ways: WebSockets of exec, attach and port-forward. For one loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    RejectData,
    Request,
)
from wsproto.utilities import RemoteProtocolError

from ipc.link.wire.stream_channels import BINARY, CLOSE, MAX_MESSAGE_BYTES, OK, TEXT, V5, ChannelSocket
from supervisor.client.errors import AgentUnreachable, ConnectionLost, raise_for_status

OPEN_TIMEOUT_S: Final = 75.0
"""How long the agent may take to open a stream: longer than it waits for Podman itself."""
CLOSE_TIMEOUT_S: Final = 2.0
MAX_OPENING: Final = 16
"""Streams that are being opened at once. A Unix socket whose backlog is full does not make connections wait: it refuses
them, and asyncio takes that for a success."""
READ_BYTES: Final = 64 * 1024
MAX_REFUSAL_BYTES: Final = 1024 * 1024
"""Most of a refusal's body that is read."""

Query = Sequence[tuple[str, str]]


class Received(msgspec.Struct, frozen=True):
    """One whole message, or the end of the connection. ``type`` is its WebSocket opcode."""

    type: int
    data: bytes | str = b""


class StreamClient:
    """Every request raises AgentUnreachable, ConnectionLost or RequestFailed."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._turns = asyncio.Semaphore(MAX_OPENING)

    @contextlib.asynccontextmanager
    async def opened(self, path: str, query: Query) -> AsyncIterator[ChannelSocket]:
        """A stream; closed at the end."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(OPEN_TIMEOUT_S), self._turns:
                    connection = await stack.enter_async_context(_connected(self.socket))
                    protocol = await connection.open(f"{path}?{urlencode(query)}")
            except TimeoutError:
                raise ConnectionLost(f"the agent did not open a stream within {OPEN_TIMEOUT_S:g} s") from None
            except (OSError, RemoteProtocolError) as error:
                raise ConnectionLost(f"the agent at {self.socket} ended before it had answered ({error})") from None
            yield ChannelSocket(connection, protocol)


@contextlib.asynccontextmanager
async def _connected(socket: Path) -> AsyncIterator[_Connection]:
    try:
        reader, writer = await asyncio.open_unix_connection(socket)
    except OSError as error:
        raise AgentUnreachable(socket, error) from None
    connection = _Connection(reader, writer)
    try:
        yield connection
    finally:
        await connection.close()


class _Connection:
    """A WebSocket's client end. Bounded both ways: sending waits for a slow peer, what is not received stays there."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._state = WSConnection(ConnectionType.CLIENT)
        self._events = self._state.events()

    async def open(self, target: str) -> str:
        """Subprotocol that the server has chosen. Raises RequestFailed, ConnectionError and RemoteProtocolError."""
        await self._send(Request(host="rootlet", target=target, subprotocols=[V5]))
        match await self._next():
            case AcceptConnection(subprotocol=protocol):
                return protocol or ""
            case RejectConnection(status_code=status) as refusal:
                raise_for_status(status, await self._refusal() if refusal.has_body else b"")
        raise ConnectionResetError("no answer")

    async def _refusal(self) -> bytes:
        body = b""
        while len(body) < MAX_REFUSAL_BYTES and isinstance(part := await self._next(), RejectData):
            body += part.data
            if part.body_finished:
                break
        return body

    async def receive(self) -> Received:
        """The next message; that of an end when the peer has closed, is gone or does not keep to the protocol."""
        parts: list[bytes | str] = []
        left = MAX_MESSAGE_BYTES
        try:
            while isinstance(event := await self._next(), Message) and (left := left - len(event.data)) >= 0:
                parts.append(event.data)
                if event.message_finished:
                    return _message(parts)
        except (ConnectionError, RemoteProtocolError):
            return Received(CLOSE)
        return Received(CLOSE)

    async def send_bytes(self, data: bytes) -> None:
        """Raises ConnectionError when the peer is gone."""
        await self._send(BytesMessage(data=data))

    async def ping(self) -> None:
        """Raises ConnectionError when the peer is gone."""
        await self._send(Ping())

    async def close(self) -> None:
        """Say that it ends, unless the peer has. A peer that does not read cannot hold us up."""
        if self._state.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            self._writer.write(self._state.send(CloseConnection(code=OK)))
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()

    async def _next(self) -> Event:
        """The next event but pings, which are answered. Raises ConnectionError and RemoteProtocolError."""
        while True:
            for event in self._events:
                if not isinstance(event, Ping):
                    return event
                await self._send(event.response())
            self._events = self._state.events()
            if not (data := await self._reader.read(READ_BYTES)):
                raise ConnectionResetError("the peer has gone")
            self._state.receive_data(data)

    async def _send(self, event: Event) -> None:
        if not isinstance(event, Request) and self._state.state is not ConnectionState.OPEN:
            raise ConnectionResetError("the peer has closed the connection")
        self._writer.write(self._state.send(event))
        await self._writer.drain()


def _message(parts: Sequence[bytes | str]) -> Received:
    if any(isinstance(part, str) for part in parts):
        return Received(TEXT, "".join(part for part in parts if isinstance(part, str)))
    return Received(BINARY, b"".join(part for part in parts if not isinstance(part, str)))
