"""Messages of channels as text, for clients whose WebSocket takes no bytes: the channel's number is a digit, the rest
Base64 (apimachinery pkg/util/httpstream/wsstream, conn.go)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from aiohttp import web

from ipc.link.wire.stream_channels import BINARY

_DIGIT_0: Final = ord("0")
_BROKEN: Final = b""
"""A message without a channel, which ends the stream."""


class Received(msgspec.Struct, frozen=True):
    """A message as `ipc.link.wire.stream_channels.WebSocket` has it."""

    type: int
    data: bytes


class Base64Socket:
    """One WebSocket, with the methods of one that carries bytes."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> Received:
        received = await self._socket.receive()
        if received.type is not web.WSMsgType.TEXT:
            return Received(BINARY if received.type is web.WSMsgType.BINARY else received.type, _BROKEN)
        return Received(BINARY, decoded(received.data))

    async def send_bytes(self, data: bytes) -> None:
        await self._socket.send_str(encoded(data))

    async def ping(self) -> None:
        await self._socket.ping()


def encoded(data: bytes) -> str:
    """The text of a message that begins with its channel's number."""
    return chr(_DIGIT_0 + data[0]) + base64.b64encode(data[1:]).decode()


def decoded(text: str) -> bytes:
    """The message of a text; one without a channel for what is none."""
    if not text[:1].isascii() or not text[:1].isdigit():
        return _BROKEN
    try:
        return bytes((ord(text[0]) - _DIGIT_0,)) + base64.b64decode(text[1:], validate=True)
    except (ValueError, binascii.Error):
        return _BROKEN
