"""ConfigMaps and Secrets with their values, which the master has and nobody keeps a copy of: asked for anew each time.

Nobody but the agent's own user comes to the admin socket, and the kubelet's ports do not have these URLs. ConfigMaps
are shown like any object; a Secret only by its name and with ``values=true``, so that no list and no log has one by
chance.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.k8s.resources.registry import BY_KIND
from ipc.link.messages.api_server import ReadObject
from workers.api_server.core.query import flag
from workers.api_server.core.status_errors import ApiError, StatusDetails
from workers.api_server.printers.representation import Plain
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector
from workers.api_server.store.site import AppState, json_answer

MAX_LIST_BYTES: Final = 64 * 1024 * 1024
"""Most that one list of ConfigMaps may have."""


class Contents:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def config_maps(self, request: web.Request) -> web.Response:
        """All ConfigMaps of a namespace, or of all, that the selectors select."""
        kind = ObjectKind.CONFIG_MAP
        if flag(request.query, "watch"):
            raise ApiError(405, "configmaps are watched under /rootlet/v1, without their values")
        store, namespace = await self._site.synced(), request.match_info.get("namespace")
        labels = parse_label_selector(request.query.get("labelSelector", ""))
        fields = parse_field_selector(request.query.get("fieldSelector", ""), BY_KIND[kind].fields)
        wanted = store.config_objects[kind].select(
            lambda found: (
                namespace in (None, found.namespace)
                and all_hold(labels, found.labels)
                and all_hold(fields, found.fields)
            )
        )
        items: list[bytes] = []
        for each in wanted:
            items += await self._if_there(kind, each.namespace, each.name)
            if sum(map(len, items)) > MAX_LIST_BYTES:
                raise ApiError(413, f"all these ConfigMaps have more than {MAX_LIST_BYTES} bytes: ask for fewer")
        return json_answer(Plain().many(kind, "v1", str(store.resource_version), items))

    async def config_map(self, request: web.Request) -> web.Response:
        return await self._one(request, ObjectKind.CONFIG_MAP)

    async def secret(self, request: web.Request) -> web.Response:
        """Answer with a Secret, asked with ``values=true`` only. Raises ApiError 403."""
        if not flag(request.query, "values"):
            raise ApiError(403, "a Secret is shown with its values only where they are asked for: values=true")
        return await self._one(request, ObjectKind.SECRET)

    async def _one(self, request: web.Request, kind: ObjectKind) -> web.Response:
        return json_answer(await self._read(kind, request.match_info["namespace"], request.match_info["name"]))

    async def _if_there(self, kind: ObjectKind, namespace: str, name: str) -> list[bytes]:
        """Nothing for one that has gone meanwhile."""
        try:
            return [await self._read(kind, namespace, name)]
        except ApiError as error:
            if error.status.code != 404:
                raise
            return []

    async def _read(self, kind: ObjectKind, namespace: str, name: str) -> bytes:
        def message(request_id: int) -> ReadObject:
            return ReadObject(request_id=request_id, kind=kind, namespace=namespace, name=name)

        reply = await self._site.master.ask(message)
        if reply.code != 200:
            details = StatusDetails(name=name, kind=kind.plural)
            raise ApiError(reply.code, reply.message, reason=reply.reason, details=details)
        return reply.message.encode()
