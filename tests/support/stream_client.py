"""The far end of a stream over a WebSocket."""

from __future__ import annotations

import asyncio

import aiohttp

from ipc.link.wire.stream_channels import ChannelSocket, Message
from tests.support.api_server import DEADLINE_S


class StreamClient:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.channels = ChannelSocket(socket, socket.protocol or "")

    async def next(self) -> Message | None:
        """The next message, None at the end."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.channels.receive()
