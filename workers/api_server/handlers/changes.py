"""Requests that change something: each becomes one message to the master, and its reply the answer."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ipc.kubecontainer.config_objects import ObjectKind
from ipc.messages.api_server import (
    ApplyManifests,
    CollectGarbage,
    DeleteObject,
    DeletePod,
    DrainNode,
    ReloadSettings,
    Reply,
    RestartWorker,
    StopAgent,
    UncordonNode,
)
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import StatusDetails, bad_request, failure, success
from workers.api_server.store.site import AppState, json_answer, read_body, status_answer
from workers.api_server.store.views import action_result

MAX_GRACE_PERIOD_S: Final = 7 * 24 * 3600
"""Longest grace period that a deletion can ask for, in seconds."""
COLLECTION_TIMEOUT_S: Final = 600.0
"""How long a collection of garbage may take before the client is told that it goes on, in seconds."""
MAX_FILE_NAME_CHARS: Final = 1024
"""Longest name of a manifest, for error texts, in characters."""


class Changes:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def delete_pod(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        grace_period_s = integer(request.query, "gracePeriodSeconds", high=MAX_GRACE_PERIOD_S)

        def message(request_id: int) -> DeletePod:
            return DeletePod(request_id=request_id, namespace=namespace, name=name, grace_period_s=grace_period_s)

        reply = await self._site.master.ask(message)
        if reply.code >= 400:
            return _refusal(reply, name, "pods")
        return status_answer(success(reply.code, name=name, kind="pods"))

    async def delete_config_object(self, request: web.Request, kind: ObjectKind) -> web.Response:
        namespace, name = request.match_info.get("namespace", ""), request.match_info["name"]

        def message(request_id: int) -> DeleteObject:
            return DeleteObject(request_id=request_id, kind=kind, namespace=namespace, name=name)

        reply = await self._site.master.ask(message)
        if reply.code >= 400:
            return _refusal(reply, name, kind.plural)
        return status_answer(success(reply.code, name=name, kind=kind.plural))

    async def apply(self, request: web.Request) -> web.Response:
        file = request.query.get("file", "-")
        if len(file) > MAX_FILE_NAME_CHARS:
            raise bad_request(f"file: longer than {MAX_FILE_NAME_CHARS} characters")
        body = await read_body(request)
        return _answer(
            await self._site.master.ask(lambda request_id: ApplyManifests(request_id=request_id, file=file, body=body))
        )

    async def restart_worker(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        reply = await self._site.master.ask(lambda request_id: RestartWorker(request_id=request_id, name=name))
        if reply.code >= 400:
            return _refusal(reply, name, "workers")
        return _answer(reply)

    async def drain(self, request: web.Request) -> web.Response:
        return _answer(await self._site.master.ask(lambda request_id: DrainNode(request_id=request_id)))

    async def uncordon(self, request: web.Request) -> web.Response:
        return _answer(await self._site.master.ask(lambda request_id: UncordonNode(request_id=request_id)))

    async def reload(self, _request: web.Request) -> web.Response:
        return _answer(await self._site.master.ask(lambda request_id: ReloadSettings(request_id=request_id)))

    async def look_for_garbage(self, _request: web.Request) -> web.Response:
        """Answer with what a collection would remove, and every image."""
        return await self._garbage(dry_run=True)

    async def collect_garbage(self, _request: web.Request) -> web.Response:
        return await self._garbage(dry_run=False)

    async def _garbage(self, *, dry_run: bool) -> web.Response:
        reply = await self._site.master.ask(
            lambda request_id: CollectGarbage(request_id=request_id, dry_run=dry_run), timeout_s=COLLECTION_TIMEOUT_S
        )
        if reply.code >= 400:
            return status_answer(failure(reply.code, reply.message, reason=reply.reason))
        return web.Response(body=reply.message.encode(), content_type="application/json")

    async def stop(self, request: web.Request) -> web.Response:
        pods = flag(request.query, "pods")
        return _answer(await self._site.master.ask(lambda request_id: StopAgent(request_id=request_id, pods=pods)))


def _refusal(reply: Reply, name: str, kind: str) -> web.Response:
    details = StatusDetails(name=name, kind=kind)
    return status_answer(failure(reply.code, reply.message, reason=reply.reason, details=details))


def _answer(reply: Reply) -> web.Response:
    return json_answer(action_result(reply), reply.code)
