"""Counts every request to the agent's server (pkg/kubelet/server/server.go, ServeHTTP)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from ipc.host.clock import monotonic
from ipc.link.metrics import kubelet as metrics
from ipc.link.metrics.reasons import OTHER
from ipc.link.shm.metric_cells import METERS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Labels = tuple[str, str, str, str]
"""Values of long_running, path, method and server_type."""

_STREAMS: Final = {"exec": "exec", "attach": "attach", "portforward": "port_forward"}
"""Subresource of a pod to the runtime operation that it asks for."""
_UNDER_WAY: Final[Counter[Labels]] = Counter()


def inflight() -> Mapping[Labels, int]:
    """Requests of this process that are under way."""
    return dict(_UNDER_WAY)


def counted(server_type: str) -> Middleware:
    """A middleware for one of `ipc.link.metrics.kubelet.SERVER_TYPES`."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        labels = labels_of(request.path, request.method, server_type)
        METERS.counter(metrics.HTTP_REQUESTS, *labels).inc()
        if hdrs.UPGRADE in request.headers:
            _count_stream(request.path)
        _UNDER_WAY[labels] += 1
        began = monotonic()
        try:
            return await handler(request)
        finally:
            _UNDER_WAY[labels] -= 1
            METERS.histogram(metrics.HTTP_REQUESTS_DURATION, *labels).observe(monotonic() - began)

    return middleware


def labels_of(path: str, method: str, server_type: str) -> Labels:
    """Values of a fixed set, whatever a client asks for."""
    first, _, rest = path.strip("/").partition("/")
    bucket = f"{first}/{rest}" if f"{first}/{rest}" in _PATHS else first if first in _PATHS else OTHER
    is_long = "true" if bucket in metrics.LONG_RUNNING else "false"
    return is_long, bucket, method if method in metrics.HTTP_METHODS else OTHER, server_type


def _count_stream(path: str) -> None:
    """An exec, attach or port-forward by a WebSocket: as the kubelet has them, or as an API server."""
    parts = path.strip("/").lower().split("/")
    for name in (parts[0], parts[-1]):
        if operation := _STREAMS.get(name):
            METERS.counter(metrics.WEBSOCKETS, name).inc()
            METERS.counter(metrics.RUNTIME_OPERATIONS_TOTAL, operation).inc()
            return


_PATHS: Final = frozenset(metrics.HTTP_PATHS)
