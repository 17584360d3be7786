"""Log levels of the agent's processes: shown and changed while they run."""

from __future__ import annotations

from aiohttp import hdrs, web

from ipc.host.log.verbosity import Verbosity
from ipc.link.messages.api_server import Reply, SetLogLevel
from workers.api_server.store.bodies import read_body
from workers.api_server.store.site import AppState, json_answer
from workers.api_server.store.views import action_result


class LogLevels:
    """The handlers. A change is the master's; every process follows at its next heartbeat."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def read(self, _request: web.Request) -> web.Response:
        return json_answer(self._site.board.read_verbosity() or Verbosity())

    async def change(self, request: web.Request) -> web.Response:
        """``area`` and ``level`` of the query, as `rootlet loglevel` asks for."""
        reply = await self._set(request.query.get("area", ""), request.query.get("level", ""))
        return json_answer(action_result(reply), reply.code)

    async def flags_v(self, request: web.Request) -> web.Response:
        """Serve ``PUT /debug/flags/v`` (apiserver/pkg/server/routes/flags.go, StringFlagPutHandler): the level of
        everything, as klog's number or by its name."""
        if request.method != hdrs.METH_PUT:
            return web.Response(status=406, text="unsupported http method")
        level = (await read_body(request)).decode(errors="replace")
        reply = await self._set("", level)
        if reply.code >= 400:
            return web.Response(status=400, text=f"failed set klog.logging.verbosity: {reply.message}")
        return web.Response(text=f"successfully set klog.logging.verbosity to {level}")

    async def _set(self, area: str, level: str) -> Reply:
        return await self._site.master.ask(
            lambda request_id: SetLogLevel(request_id=request_id, area=area, level=level)
        )
