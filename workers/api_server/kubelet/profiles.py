"""GET /debug/pprof/{name}: profiles of a process of the agent (net/http/pprof; `ipc.host.process.profiles`).

Different on purpose: the kubelet is one process. ``process`` names one of ours, as `rootlet get workers` shows it, or
the master; without it the API server is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from ipc.host.process.profiles import Profiler, Taken
from ipc.link.messages.api_server import ReadProfile
from workers.api_server.core.query import flag, integer
from workers.api_server.core.route import plain_text
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.site import AppState

API_SERVER: Final = "api"
SECONDS: Final = 30
MAX_SECONDS: Final = 300
SPARE_S: Final = 30.0
"""How much longer than its sampling a profile of another process may take, in seconds."""
ACTIONS: Final = ("start", "stop")


class Profiles:
    """The handler."""

    def __init__(self, site: AppState) -> None:
        self._master = site.master
        self._own = Profiler()

    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if not name:
            return plain_text(404, "404: Page Not Found")
        process = request.query.get("process", API_SERVER)
        seconds = integer(request.query, "seconds", low=1, high=MAX_SECONDS) or SECONDS
        action = _action(request.query)
        if process == API_SERVER:
            taken = await self._own.take(name, seconds, action)
        else:
            taken = await self._of(process, name, seconds, action)
        if taken.code != web.HTTPOk.status_code:
            raise ApiError(taken.code, taken.text)
        return plain_text(200, taken.text)

    async def _of(self, process: str, name: str, seconds: int, action: str) -> Taken:
        """Take a profile of another process: the master asks it."""
        reply = await self._master.ask(
            lambda number: ReadProfile(
                request_id=number, process=process, profile=name, seconds=seconds, action=action
            ),
            timeout_s=seconds + SPARE_S,
        )
        return Taken(reply.code, reply.message)


def _action(query: Mapping[str, str]) -> str:
    return next((action for action in ACTIONS if flag(query, action)), "")
