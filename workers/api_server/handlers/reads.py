"""GET requests, answered from the store alone: one pod, lists, watches, the agent and its workers."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

import msgspec
from aiohttp import web

from ipc.kubecontainer.config_objects import ObjectKind
from ipc.messages.api_server import EventChanged, ObjectChanged, PodChanged
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import expired, not_found
from workers.api_server.handlers.workers_view import read_row, with_resources, worker_view
from workers.api_server.store.objects import EVENT_FIELDS, OBJECT_FIELDS, POD_FIELDS, WatchedObject, list_object
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector
from workers.api_server.store.site import AppState, begin_stream, json_answer
from workers.api_server.store.store import Expired, ObjectStore, Wanted
from workers.api_server.store.views import WorkerList, pod_details, version_info
from workers.api_server.store.watch import MAX_WATCH_S, WatchRequest, stream_watch

M = TypeVar("M", PodChanged, EventChanged, ObjectChanged)


class _Resource(msgspec.Struct, Generic[M], frozen=True):
    """A kind of object that can be listed and watched."""

    kind: str
    fields: frozenset[str]
    objects: ObjectStore[M]


class Reads:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._pods = _Resource("Pod", POD_FIELDS, site.store.pods)
        self._events = _Resource("Event", EVENT_FIELDS, site.store.events)
        self._config_objects = {
            kind: _Resource(f"{kind}Summary" if kind.has_values else kind, OBJECT_FIELDS, objects)
            for kind, objects in site.store.config_objects.items()
        }

    async def version(self, _request: web.Request) -> web.Response:
        return json_answer(version_info(await self._site.agent()))

    async def pods(self, request: web.Request) -> web.StreamResponse:
        return await self._list_or_watch(request, self._pods)

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await self._list_or_watch(request, self._events)

    async def config_objects(self, request: web.Request, kind: ObjectKind) -> web.StreamResponse:
        return await self._list_or_watch(request, self._config_objects[kind])

    async def config_object(self, request: web.Request, kind: ObjectKind) -> web.Response:
        store = await self._site.synced()
        name = request.match_info["name"]
        found = store.config_objects[kind].find(request.match_info.get("namespace", ""), name)
        if found is None:
            raise not_found(kind.plural, name)
        return json_answer(found.json)

    async def pod(self, request: web.Request) -> web.Response:
        return json_answer((await self._site.pod(request)).json)

    async def pod_details(self, request: web.Request) -> web.Response:
        pod = (await self._site.pod(request)).message
        return json_answer(pod_details(pod, await self._site.agent()))

    async def workers(self, request: web.Request) -> web.Response:
        agent = await self._site.agent()
        now = self._site.clock.now().mono
        views = [worker_view(info, read_row(self._site.board, info.slot), now) for info in agent.workers]
        if flag(request.query, "resources"):
            views = await asyncio.to_thread(with_resources, views)
        return json_answer(WorkerList(items=views))

    async def _list_or_watch(self, request: web.Request, resource: _Resource[M]) -> web.StreamResponse:
        store = await self._site.synced()
        wanted = _wanted(request, resource)
        if flag(request.query, "watch"):
            return await self._watch(request, resource, wanted)
        items = resource.objects.select(wanted)
        return json_answer(list_object(f"{resource.kind}List", store.resource_version, items))

    async def _watch(self, request: web.Request, resource: _Resource[M], wanted: Wanted[M]) -> web.StreamResponse:
        site, query = self._site, request.query
        watch = WatchRequest(
            kind=resource.kind,
            wanted=wanted,
            resource_version=self._resume_from(resource, integer(query, "resourceVersion")),
            bookmarks=flag(query, "allowWatchBookmarks"),
            timeout_s=integer(query, "timeoutSeconds", low=1) or MAX_WATCH_S,
        )
        response = await begin_stream(request, "application/json")
        await stream_watch(watch, site.store, resource.objects, site.changed, site.clock, response.write)
        return response

    def _resume_from(self, resource: _Resource[M], asked: int | None) -> int | None:
        """Where a watch begins; absent and 0 mean *with whatever there is*. Raises ApiError 410."""
        if not asked:
            return None
        if asked > self._site.store.resource_version:
            raise expired(f"resource version {asked} was not given out by this agent: it may have been restarted")
        try:
            resource.objects.changes_after(asked, 0)
        except Expired as error:
            raise expired(str(error)) from None
        return asked


def _wanted(request: web.Request, resource: _Resource[M]) -> Wanted[M]:
    """Return the objects that match the namespace and the selectors. Raises ApiError 400."""
    namespace = request.match_info.get("namespace")
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), resource.fields)

    def wanted(found: WatchedObject[M]) -> bool:
        return (
            (namespace is None or found.namespace == namespace)
            and all_hold(labels, found.labels)
            and all_hold(fields, found.fields)
        )

    return wanted
