"""The URLs of the admin socket: Kubernetes' own where it has them, ``/rootlet/v1`` for the rest."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from ipc.kubecontainer.config_objects import ObjectKind
from workers.api_server.handlers.changes import Changes
from workers.api_server.handlers.health import Health
from workers.api_server.handlers.log_levels import LogLevels
from workers.api_server.handlers.pod_log import PodLog
from workers.api_server.handlers.reads import Reads
from workers.api_server.handlers.trace import Traces
from workers.api_server.store.site import AppState
from workers.api_server.streams.port_forward import PortForward
from workers.api_server.streams.remote_command import RemoteCommand

_POD: Final = "/api/v1/namespaces/{namespace}/pods/{name}"


def _get(path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.RouteDef:
    return web.get(path, handler, allow_head=False)


def _stream_routes(site: AppState) -> list[web.RouteDef]:
    """Routes of the streams by GET, as WebSockets begin. Clients whose WebSocket is refused ask again by POST, for
    SPDY: the answer to that is the one that people see."""
    commands, ports = RemoteCommand(site), PortForward(site)
    streams = {"exec": commands.exec, "attach": commands.attach, "portforward": ports.get}
    return [
        route
        for name, handler in streams.items()
        for route in (_get(f"{_POD}/{name}", handler), web.post(f"{_POD}/{name}", handler))
    ]


def _config_object_routes(kind: ObjectKind, reads: Reads, changes: Changes) -> list[web.RouteDef]:
    """Not under Kubernetes' URLs: an answer has no values, so it is no v1 object."""
    listed = functools.partial(reads.config_objects, kind=kind)
    of_namespace = f"/rootlet/v1/namespaces/{{namespace}}/{kind.plural}"
    return [
        _get(f"/rootlet/v1/{kind.plural}", listed),
        _get(of_namespace, listed),
        _get(f"{of_namespace}/{{name}}", functools.partial(reads.config_object, kind=kind)),
        web.delete(f"{of_namespace}/{{name}}", functools.partial(changes.delete_config_object, kind=kind)),
    ]


def route_table(site: AppState) -> list[web.RouteDef]:
    """Every URL with its handler. HEAD is not answered: of a watch it would never end."""
    health, reads, changes, pod_log = Health(site), Reads(site), Changes(site), PodLog(site)
    traces, log_levels = Traces(site), LogLevels(site)
    return [
        *_stream_routes(site),
        *(route for kind in ObjectKind for route in _config_object_routes(kind, reads, changes)),
        _get("/healthz", health.all),
        _get("/healthz/{check}", health.one),
        _get("/version", reads.version),
        _get("/api/v1/pods", reads.pods),
        _get("/api/v1/namespaces/{namespace}/pods", reads.pods),
        _get(_POD, reads.pod),
        web.delete(_POD, changes.delete_pod),
        _get(f"{_POD}/log", pod_log.get),
        _get("/api/v1/events", reads.events),
        _get("/api/v1/namespaces/{namespace}/events", reads.events),
        _get("/rootlet/v1/workers", reads.workers),
        web.post("/rootlet/v1/workers/{name}/restart", changes.restart_worker),
        _get("/rootlet/v1/pods/{namespace}/{name}", reads.pod_details),
        web.post("/rootlet/v1/apply", changes.apply),
        web.post("/rootlet/v1/stop", changes.stop),
        _get("/rootlet/v1/loglevel", log_levels.read),
        web.post("/rootlet/v1/loglevel", log_levels.change),
        web.put("/debug/flags/v", log_levels.flags_v),
        web.post("/rootlet/v1/trace", traces.start),
        _get("/rootlet/v1/trace", traces.read),
        web.delete("/rootlet/v1/trace", traces.stop),
    ]
