"""POST /container and /containers of the first kubelet's server: the body becomes the set of the source ``http``
(pkg/kubelet/server.go of 0.5)."""

from __future__ import annotations

from aiohttp import web

from ipc.link.messages.api_server import PostManifests
from workers.api_server.core.route import plain_text
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.bodies import read_body
from workers.api_server.store.site import AppState


class Manifests:
    """The handler, of both: one manifest is a set of one."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def post(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        reply = await self._site.master.ask(lambda request_id: PostManifests(request_id=request_id, body=body))
        if reply.code >= 400:
            raise ApiError(reply.code, reply.message)
        return plain_text(200, "".join(f"{line}\n" for line in reply.results))
