"""GET requests, answered from the store alone: one pod, lists, watches, the agent and its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec
from aiohttp import web

from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.k8s.resources import registry
from ipc.k8s.resources.resource import Resource
from ipc.link.messages.api_server import EventChanged, ObjectChanged, PodChanged, ReadNextStep
from ipc.link.messages.wait_reasons import NextStep
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import ApiError, expired, not_found
from workers.api_server.printers.representation import Representation, representation
from workers.api_server.store.objects import WatchedObject
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector
from workers.api_server.store.site import AppState, begin_stream, json_answer
from workers.api_server.store.store import Expired, ObjectStore, Wanted
from workers.api_server.store.views import (
    NAMESPACE_PHASE,
    NamespaceView,
    WorkerView,
    namespace_views,
    pod_details,
    version_info,
)
from workers.api_server.store.watch import MAX_WATCH_S, WatchRequest, stream_watch
from workers.api_server.store.workers_view import read_row, with_resources, worker_view

NEXT_STEP_TIMEOUT_S: Final = 1.0
"""How long the master may take to say what it does next for a pod, in seconds."""
Named = WorkerView | NamespaceView
M = TypeVar("M", PodChanged, EventChanged, ObjectChanged)


class _Stored(msgspec.Struct, Generic[M], frozen=True):
    """A kind of object that can be listed and watched."""

    resource: Resource
    objects: ObjectStore[M]
    kind: str
    """As lists call it: what is shown of some is a summary, which has a kind of its own."""


class Reads:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._pods = _Stored(registry.PODS, site.store.pods, "Pod")
        self._events = _Stored(registry.EVENTS, site.store.events, "Event")
        self._config_objects = {
            kind: _Stored(registry.BY_KIND[kind], objects, f"{kind}Summary" if kind.has_values else kind)
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
        return await self._one(request, self._config_objects[kind])

    async def pod(self, request: web.Request) -> web.Response:
        return await self._one(request, self._pods)

    async def event(self, request: web.Request) -> web.Response:
        return await self._one(request, self._events)

    async def namespaces(self, request: web.Request) -> web.Response:
        """Every namespace that something is in, and the one that is always there."""
        _refuse_watch(request, registry.NAMESPACES)
        found = [each for each in await self._namespaces() if _is_selected(request, registry.NAMESPACES, each)]
        return self._listed(request, registry.NAMESPACES, found)

    async def namespace(self, request: web.Request) -> web.Response:
        return self._named(request, registry.NAMESPACES, await self._namespaces())

    async def _namespaces(self) -> list[NamespaceView]:
        store, agent = await self._site.synced(), await self._site.agent()
        return namespace_views(store.namespaces(), agent.started_at)

    async def pod_details(self, request: web.Request) -> web.Response:
        pod = (await self._site.pod(request)).message
        return json_answer(pod_details(pod, await self._site.agent(), await self._next_step(pod)))

    async def _next_step(self, pod: PodChanged) -> NextStep | None:
        """None when the master does not say soon: all else of the pod is known here."""
        meta = pod.pod.metadata
        try:
            reply = await self._site.master.ask(
                lambda number: ReadNextStep(request_id=number, namespace=meta.namespace, name=meta.name),
                timeout_s=NEXT_STEP_TIMEOUT_S,
            )
        except ApiError:
            return None
        return msgspec.json.decode(reply.message, type=NextStep) if reply.code == 200 else None

    async def workers(self, request: web.Request) -> web.Response:
        _refuse_watch(request, registry.WORKERS)
        return self._listed(request, registry.WORKERS, await self._workers(request))

    async def worker(self, request: web.Request) -> web.Response:
        return self._named(request, registry.WORKERS, await self._workers(request))

    async def _workers(self, request: web.Request) -> Sequence[WorkerView]:
        agent = await self._site.agent()
        now = self._site.clock.now().mono
        views = [worker_view(info, read_row(self._site.board, info.slot), now) for info in agent.workers]
        wanted = [view for view in views if _is_selected(request, registry.WORKERS, view)]
        if flag(request.query, "resources"):
            return await asyncio.to_thread(with_resources, wanted)
        return wanted

    async def _one(self, request: web.Request, stored: _Stored[M]) -> web.Response:
        store, resource = await self._site.synced(), stored.resource
        name = request.match_info["name"]
        found = stored.objects.find(request.match_info.get("namespace", ""), name)
        if found is None:
            raise not_found(resource.plural, name)
        shown = representation(request, resource, self._site.clock)
        return json_answer(shown.one(found.json, str(store.resource_version)))

    def _listed(self, request: web.Request, resource: Resource, found: Sequence[Named]) -> web.Response:
        """Objects that are put together when somebody asks."""
        shown = representation(request, resource, self._site.clock)
        version = str(self._site.store.resource_version)
        encoded = [msgspec.json.encode(each) for each in found]
        return json_answer(shown.many(resource.kind, resource.api_version, version, encoded))

    def _named(self, request: web.Request, resource: Resource, found: Sequence[Named]) -> web.Response:
        """The one of them that the URL names."""
        name = request.match_info["name"]
        one = next((each for each in found if each.metadata.name == name), None)
        if one is None:
            raise not_found(resource.plural, name)
        shown = representation(request, resource, self._site.clock)
        return json_answer(shown.one(msgspec.json.encode(one), str(self._site.store.resource_version)))

    async def _list_or_watch(self, request: web.Request, stored: _Stored[M]) -> web.StreamResponse:
        store = await self._site.synced()
        wanted = _wanted(request, stored)
        shown = representation(request, stored.resource, self._site.clock)
        if flag(request.query, "watch"):
            return await self._watch(request, stored, wanted, shown)
        items = [found.json for found in stored.objects.select(wanted)]
        version = str(store.resource_version)
        return json_answer(shown.many(stored.kind, stored.resource.api_version, version, items))

    async def _watch(
        self, request: web.Request, resource: _Stored[M], wanted: Wanted[M], shown: Representation
    ) -> web.StreamResponse:
        site, query = self._site, request.query
        if flag(query, "sendInitialEvents"):
            raise ApiError(422, "sendInitialEvents: Forbidden: lists are not streamed here", reason="Invalid")
        watch = WatchRequest(
            kind=resource.kind,
            wanted=wanted,
            resource_version=self._resume_from(resource, integer(query, "resourceVersion")),
            bookmarks=flag(query, "allowWatchBookmarks"),
            timeout_s=integer(query, "timeoutSeconds", low=1) or MAX_WATCH_S,
            shown=shown.changed,
        )
        response = await begin_stream(request, "application/json")
        await stream_watch(watch, site.store, resource.objects, site.changed, site.clock, response.write)
        return response

    def _resume_from(self, resource: _Stored[M], asked: int | None) -> int | None:
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


def _refuse_watch(request: web.Request, resource: Resource) -> None:
    if flag(request.query, "watch"):
        raise ApiError(405, f"{resource.plural} cannot be watched: ask again for what they are")


def _is_selected(request: web.Request, resource: Resource, found: Named) -> bool:
    """Whether the selectors select an object that has no more than a name. Raises ApiError 400."""
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), resource.fields)
    values = {"metadata.name": found.metadata.name, "status.phase": NAMESPACE_PHASE}
    return all_hold(labels, found.metadata.labels) and all_hold(fields, values)


def _wanted(request: web.Request, stored: _Stored[M]) -> Wanted[M]:
    """Return the objects that match the namespace and the selectors. Raises ApiError 400."""
    namespace = request.match_info.get("namespace")
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), stored.resource.fields)

    def wanted(found: WatchedObject[M]) -> bool:
        return (
            (namespace is None or found.namespace == namespace)
            and all_hold(labels, found.labels)
            and (not fields or all_hold(fields, found.fields))
        )

    return wanted
