"""The URLs of the admin socket: Kubernetes' own where it has them, the kubelet's (`kubelet_routes`), ``/rootlet/v1``
for the rest."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

from ipc.k8s.podobjects.config_objects import ObjectKind
from workers.api_server.core.route import Route, admin_routes
from workers.api_server.handlers.changes import Changes
from workers.api_server.handlers.contents import Contents
from workers.api_server.handlers.log_levels import LogLevels
from workers.api_server.handlers.nodes import Nodes
from workers.api_server.handlers.pod_log import PodLog
from workers.api_server.handlers.reads import Reads
from workers.api_server.handlers.statistics import Statistics
from workers.api_server.handlers.trace import Traces
from workers.api_server.store.site import AppState
from workers.api_server.streams.archives import Archives
from workers.api_server.streams.port_forward import PortForward
from workers.api_server.streams.remote_command import RemoteCommand

_POD: Final = "/api/v1/namespaces/{namespace}/pods/{name}"


def _get(path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.RouteDef:
    return web.get(path, handler, allow_head=False)


def _stream_routes(site: AppState) -> list[web.RouteDef]:
    """Routes of the streams by GET, as WebSockets begin, and by POST, as clients of SPDY ask."""
    commands, ports = RemoteCommand(site), PortForward(site)
    streams = {"exec": commands.exec, "attach": commands.attach, "portforward": ports.open}
    return [
        route
        for name, handler in streams.items()
        for route in (_get(f"{_POD}/{name}", handler), web.post(f"{_POD}/{name}", handler))
    ]


def _config_object_routes(kind: ObjectKind, reads: Reads, changes: Changes) -> list[web.RouteDef]:
    """Not under Kubernetes' URLs: an answer has no values, so it is no v1 object."""
    listed = functools.partial(reads.config_objects, kind=kind)
    everywhere = f"/rootlet/v1/{kind.plural}"
    of_namespace = f"/rootlet/v1/namespaces/{{namespace}}/{kind.plural}" if kind.is_namespaced else everywhere
    return [
        *(_get(path, listed) for path in dict.fromkeys((everywhere, of_namespace))),
        _get(f"{of_namespace}/{{name}}", functools.partial(reads.config_object, kind=kind)),
        web.delete(f"{of_namespace}/{{name}}", functools.partial(changes.delete_config_object, kind=kind)),
    ]


def route_table(site: AppState, kubelets: Sequence[Route]) -> list[web.RouteDef]:
    """Every URL with its handler; ``kubelets`` are those of the kubelet. HEAD is not answered: of a watch it would
    never end."""
    reads, changes, pod_log = Reads(site), Changes(site), PodLog(site)
    archives, contents = Archives(site), Contents(site)
    traces, nodes, statistics, log_levels = Traces(site), Nodes(site), Statistics(site), LogLevels(site)
    return [
        *_stream_routes(site),
        _get("/api/v1/nodes", nodes.list),
        _get("/api/v1/nodes/{name}", nodes.one),
        *(route for kind in ObjectKind for route in _config_object_routes(kind, reads, changes)),
        *admin_routes(kubelets),
        _get("/version", reads.version),
        _get("/api/v1/pods", reads.pods),
        _get("/api/v1/namespaces/{namespace}/pods", reads.pods),
        _get(_POD, reads.pod),
        web.delete(_POD, changes.delete_pod),
        web.patch(_POD, changes.patch_pod),
        _get(f"{_POD}/log", pod_log.get),
        _get("/api/v1/events", reads.events),
        _get("/api/v1/namespaces/{namespace}/events", reads.events),
        _get("/api/v1/namespaces/{namespace}/events/{name}", reads.event),
        _get("/api/v1/namespaces", reads.namespaces),
        _get("/api/v1/namespaces/{name}", reads.namespace),
        _get("/api/v1/configmaps", contents.config_maps),
        _get("/api/v1/namespaces/{namespace}/configmaps", contents.config_maps),
        _get("/api/v1/namespaces/{namespace}/configmaps/{name}", contents.config_map),
        _get("/api/v1/namespaces/{namespace}/secrets/{name}", contents.secret),
        _get("/rootlet/v1/workers", reads.workers),
        _get("/rootlet/v1/workers/{name}", reads.worker),
        _get("/rootlet/v1/statistics", statistics.snapshot),
        web.post("/rootlet/v1/workers/{name}/restart", changes.restart_worker),
        _get("/rootlet/v1/pods/{namespace}/{name}", reads.pod_details),
        web.post("/rootlet/v1/apply", changes.apply),
        web.post("/rootlet/v1/patch", changes.patch),
        web.post("/rootlet/v1/pods/{namespace}/{name}/restart", changes.restart_pod),
        web.post("/rootlet/v1/pods/{namespace}/{name}/pause", changes.pause_pod),
        web.post("/rootlet/v1/pods/{namespace}/{name}/resume", changes.resume_pod),
        web.post("/rootlet/v1/pods/{namespace}/{name}/containers/{container}/restart", changes.restart_container),
        _get("/rootlet/v1/pods/{namespace}/{name}/archive", archives.get),
        web.put("/rootlet/v1/pods/{namespace}/{name}/archive", archives.put),
        web.post("/rootlet/v1/drain", changes.drain),
        web.post("/rootlet/v1/uncordon", changes.uncordon),
        web.post("/rootlet/v1/reload", changes.reload),
        web.post("/rootlet/v1/stop", changes.stop),
        _get("/rootlet/v1/garbage", changes.look_for_garbage),
        web.post("/rootlet/v1/garbage", changes.collect_garbage),
        _get("/rootlet/v1/loglevel", log_levels.read),
        web.post("/rootlet/v1/loglevel", log_levels.change),
        web.post("/rootlet/v1/trace", traces.start),
        _get("/rootlet/v1/trace", traces.read),
        web.delete("/rootlet/v1/trace", traces.stop),
    ]
