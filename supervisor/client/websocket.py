"""The admin socket's client for what goes both ways: WebSockets of exec, attach and port-forward. For one loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import aiohttp

from ipc.wire.stream_channels import MAX_MESSAGE_BYTES, V5, ChannelSocket
from supervisor.client.errors import AgentUnreachable, ConnectionLost, raise_for_status

CONNECT_TIMEOUT_S: Final = 5.0
OPEN_TIMEOUT_S: Final = 75.0
"""How long the agent may take to open a stream: longer than it waits for Podman itself."""
CLOSE_TIMEOUT_S: Final = 2.0
MAX_OPENING: Final = 16
"""Streams that are being opened at once. A Unix socket whose backlog is full does not make connections wait: it refuses
them, and asyncio takes that for a success."""

Query = Sequence[tuple[str, str]]


class StreamClient:
    """Use it as a context. Every request raises AgentUnreachable, ConnectionLost or RequestFailed."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._turns = asyncio.Semaphore(MAX_OPENING)
        refusals = aiohttp.TraceConfig()
        refusals.on_request_end.append(_refuse)
        self._http = aiohttp.ClientSession(
            "http://rootlet",
            connector=aiohttp.UnixConnector(str(socket), limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
            trace_configs=[refusals],
            trust_env=False,
        )

    async def __aenter__(self) -> StreamClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    @contextlib.asynccontextmanager
    async def opened(self, path: str, query: Query) -> AsyncIterator[ChannelSocket]:
        """A stream; closed at the end."""
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S), self._turns:
                socket = await self._http.ws_connect(
                    path,
                    params=query,
                    protocols=(V5,),
                    max_msg_size=MAX_MESSAGE_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                )
        except TimeoutError:
            raise ConnectionLost(f"the agent did not open a stream within {OPEN_TIMEOUT_S:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise AgentUnreachable(self.socket, error.os_error) from None
        except aiohttp.ClientError as error:
            raise ConnectionLost(f"the agent at {self.socket} ended before it had answered ({error})") from None
        try:
            yield ChannelSocket(socket, socket.protocol or "")
        finally:
            await socket.close()


async def _refuse(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
) -> None:
    """Read the body of the agent's refusal: aiohttp itself drops it. Raises RequestFailed."""
    if params.response.status >= 400:
        raise_for_status(params.response.status, await params.response.read())
