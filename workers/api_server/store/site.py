"""The services that every handler of the admin socket uses, and the steps that handlers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from ipc.host.clock import Clock
from ipc.link.messages.api_server import AgentChanged, PodChanged
from ipc.link.shm.board import Board
from ipc.link.wire.boot import WorkerSettings
from workers.api_server.core.status_errors import Status, not_found, unavailable
from workers.api_server.core.stream_sockets import StreamSockets
from workers.api_server.store.objects import StoredObject
from workers.api_server.store.requests import MasterRequests
from workers.api_server.store.statistics import Statistics
from workers.api_server.store.store import Store
from workers.api_server.store.watch import Notifier
from workers.fs.fs_executor import FsExecutor
from workers.libpod.streams import PodmanStreams
from workers.podhttp.pod_network import Dialer

SYNC_TIMEOUT_S: Final = 5.0
"""How long a read waits for the store to be complete after a start."""

_JSON: Final = "application/json"

T = TypeVar("T")


class AppState(msgspec.Struct, frozen=True, kw_only=True):
    """One API server's parts."""

    store: Store
    changed: Notifier
    """Notified after every change of the store."""
    master: MasterRequests
    clock: Clock
    board: Board
    logs_dir: Path
    files: FsExecutor
    """Threads for files that lie where others may have put them."""
    podman: PodmanStreams
    dialer: Dialer
    sockets: StreamSockets
    statistics: Statistics
    settings: WorkerSettings
    sync_timeout_s: float = SYNC_TIMEOUT_S
    quiet_relist_period_s: float = 300.0
    heartbeat_timeout_s: float = 3.0
    """A worker that has been silent for longer hangs."""

    async def synced(self) -> Store:
        """The store once it is complete. Raises ApiError 503 when that takes too long."""
        return await self._wait_for(lambda: self.store if self.store.synced else None)

    async def agent(self) -> AgentChanged:
        """The agent's state as the master last sent it. Raises ApiError 503 when that takes too long."""
        return await self._wait_for(lambda: self.store.agent)

    async def _wait_for(self, known: Callable[[], T | None]) -> T:
        deadline = self.clock.now().mono + self.sync_timeout_s
        while (found := known()) is None:
            wake = self.changed.subscribe()
            try:
                async with asyncio.timeout(deadline - self.clock.now().mono):
                    await wake.wait()
            except TimeoutError:
                raise unavailable("the API server has just started and does not know everything yet") from None
        return found

    async def pod(self, request: web.Request) -> StoredObject[PodChanged]:
        """The pod that the URL names. Raises ApiError 404 and 503."""
        store = await self.synced()
        found = store.pods.find(request.match_info["namespace"], request.match_info["name"])
        if found is None:
            raise not_found("pods", request.match_info["name"])
        return found


def json_answer(value: object, code: int = 200) -> web.Response:
    """A Struct, or JSON that is encoded already."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return web.Response(body=body, status=code, content_type=_JSON)


def status_answer(status: Status) -> web.Response:
    """A v1 Status under its own code."""
    return json_answer(status, status.code)


async def begin_stream(request: web.Request, content_type: str) -> web.StreamResponse:
    """An answer whose body follows piece by piece; the client learns at once that it was accepted."""
    response = web.StreamResponse()
    response.content_type = content_type
    await response.prepare(request)
    return response


def break_off(request: web.Request) -> ConnectionResetError:
    """End a stream whose rest cannot be had, so that its client sees that it has not got all; the error to raise."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the stream was broken off")
