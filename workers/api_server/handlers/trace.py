"""Tracing of the agent's processes (`ipc.link.shm.trace`): begin, read, end. One trace at a time; the newest beginning
counts."""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp import web

from workers.api_server.core.status_errors import success
from workers.api_server.store.site import AppState, json_answer, status_answer


class Traces:
    """Handlers of requests for a trace."""

    def __init__(self, site: AppState) -> None:
        self._board = site.board

    async def start(self, _request: web.Request) -> web.Response:
        self._board.trace.start()
        return status_answer(success(200, name="trace", kind="trace"))

    async def read(self, _request: web.Request) -> web.Response:
        """Read the trace in a thread: a trace may have megabytes."""
        return json_answer(await asyncio.to_thread(lambda: msgspec.json.encode(self._board.trace.read())))

    async def stop(self, _request: web.Request) -> web.Response:
        self._board.trace.stop()
        return status_answer(success(200, name="trace", kind="trace"))
