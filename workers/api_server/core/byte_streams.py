"""A client's bytes both ways, once there is no more HTTP between it and us: on the connection itself, or in messages of
a WebSocket. Each way is for one task at a time."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from aiohttp import web

READ_AHEAD_BYTES: Final = 64 * 1024
"""The transport is not read any more when so many bytes wait; the last of its reads may exceed that."""


class ByteStream(Protocol):
    async def read(self) -> bytes:
        """Bytes that have come; empty at the end, in whatever way that came."""

    async def write(self, data: bytes) -> None:
        """Write all of the data; waits while the client takes none. Raises ConnectionError."""

    def abort(self) -> None:
        """Close the connection, whatever is still to be sent."""


class TakenOver:
    """A connection that was one of HTTP until its protocol was changed (101)."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._received = bytearray()
        self._is_lost = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        # So that bytes that were written are with the kernel. Not 0: with TLS it is never said to be reached again.
        transport.set_write_buffer_limits(high=1)

    async def read(self) -> bytes:
        while not self._received:
            if self._is_lost:
                return b""
            self._readable.clear()
            await self._readable.wait()
        data = bytes(self._received)
        self._received.clear()
        if not self._is_lost and not self._transport.is_reading():
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        self._check()
        self._transport.write(data)
        await self._writable.wait()
        self._check()

    def abort(self) -> None:
        self._transport.abort()

    def _check(self) -> None:
        if self._is_lost or self._transport.is_closing():
            raise ConnectionResetError("the client has gone")

    # --- what the transport says ---

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._readable.set()
        if len(self._received) >= READ_AHEAD_BYTES and self._transport.is_reading():
            self._transport.pause_reading()

    def connection_lost(self) -> None:
        self._is_lost = True
        self._readable.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


class MessageBytes:
    """A WebSocket whose binary messages are pieces of one stream of bytes, cut anywhere (client-go
    tools/portforward, tunneling_connection.go)."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self._socket = socket
        self._transport = transport

    async def read(self) -> bytes:
        while (message := await self._socket.receive()).type is web.WSMsgType.BINARY:
            if message.data:
                return bytes(message.data)
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    def abort(self) -> None:
        self._transport.abort()
