"""The URLs of the admin socket: Kubernetes' own where it has them, ``/rootlet/v1`` for the rest."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from workers.api_server.changes import Changes
from workers.api_server.pod_log import PodLog
from workers.api_server.reads import Reads
from workers.api_server.site import Site

_POD: Final = "/api/v1/namespaces/{namespace}/pods/{name}"


def route_table(site: Site) -> list[web.RouteDef]:
    """Every URL with its handler. Without a watch, HEAD is answered too."""
    reads, changes, pod_log = Reads(site), Changes(site), PodLog(site)
    return [
        web.get("/healthz", reads.healthz),
        web.get("/version", reads.version),
        web.get("/api/v1/pods", reads.pods),
        web.get("/api/v1/namespaces/{namespace}/pods", reads.pods),
        web.get(_POD, reads.pod),
        web.delete(_POD, changes.delete_pod),
        web.get(f"{_POD}/log", pod_log.get),
        web.get("/api/v1/events", reads.events),
        web.get("/api/v1/namespaces/{namespace}/events", reads.events),
        web.get("/rootlet/v1/workers", reads.workers),
        web.get("/rootlet/v1/pods/{namespace}/{name}", reads.pod_details),
        web.post("/rootlet/v1/apply", changes.apply),
        web.post("/rootlet/v1/stop", changes.stop),
    ]
