"""Takes in a command's output where a client would get it piece by piece."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from ipc.link.wire.stream_channels import Channel, Message, StreamStatus

MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""Most that one command may print, as of a CRI runtime's answer to ExecSync (cri-client pkg/util, maxMsgSize)."""


class Collected:
    """`Channels` that nobody is at the other end of."""

    half_closes: Final = True

    def __init__(self) -> None:
        self.response: web.StreamResponse = web.Response()
        self.status: StreamStatus | None = None
        """How the command ended."""
        self._output = {Channel.STDOUT: bytearray(), Channel.STDERR: bytearray()}

    @property
    def stdout(self) -> bytes:
        return bytes(self._output[Channel.STDOUT])

    @property
    def stderr(self) -> bytes:
        return bytes(self._output[Channel.STDERR])

    async def ready(self) -> bool:
        return True

    async def send(self, channel: int, data: bytes) -> None:
        """Raises ConnectionError for more than is taken in: the command is ended then."""
        self._output[Channel(channel)] += data
        if sum(map(len, self._output.values())) > MAX_OUTPUT_BYTES:
            raise ConnectionError(f"it printed more than {MAX_OUTPUT_BYTES} bytes")

    async def end(self, channel: int) -> None:
        """Nothing follows from it."""

    async def receive(self) -> Message | None:
        """Wait for an input, which never comes."""
        await asyncio.Event().wait()
        return None

    async def ping(self) -> None:
        """Nobody can go."""

    def going_away(self) -> None:
        """The status tells."""

    async def say(self, status: StreamStatus) -> None:
        self.status = status
