"""The URLs of the kubelet's server, each once: on the admin socket, the secure port, and some on the read-only port.

Who adds one writes a function ``(site) -> list[Route]`` where the handlers are and names it in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import hdrs

from ipc.link.metrics.model import Endpoint
from workers.api_server.core.route import ABSENT, ANY_METHOD, REFUSED, Handler, Route
from workers.api_server.handlers.health import Health
from workers.api_server.handlers.log_levels import LogLevels
from workers.api_server.handlers.metrics import Metrics
from workers.api_server.handlers.statistics import Statistics
from workers.api_server.kubelet.container_logs import ContainerLogs
from workers.api_server.kubelet.manifests import Manifests
from workers.api_server.kubelet.node_logs import NodeLogs
from workers.api_server.kubelet.pages import Pages
from workers.api_server.kubelet.pods import Pods
from workers.api_server.kubelet.profiles import Profiles
from workers.api_server.kubelet.streams import KubeletStreams
from workers.api_server.store.site import AppState


def _health(site: AppState) -> list[Route]:
    health = Health(site)
    return [
        Route(path="/healthz", methods=ANY_METHOD, handler=health.all, read_only=True),
        Route(path="/healthz/{check}", methods=ANY_METHOD, handler=health.one, read_only=True),
    ]


def _pods(site: AppState) -> list[Route]:
    pods = Pods(site)
    return [
        Route(path="/pods", handler=pods.pods, read_only=True),
        Route(path="/pods/", handler=pods.pods, read_only=True),
        *(
            Route(path=path, handler=pods.allocated_pods, read_only=True)
            for path in ("/allocatedPods", "/allocatedPods/")
        ),
        *(
            Route(path=f"/allocatedPods/{pod}", handler=pods.allocated_pod, read_only=True)
            for pod in ("{uid}", "{namespace}/{name}", "{namespace}/{name}/{uid}")
        ),
        Route(path="/podInfo", handler=pods.pod_info, read_only=True),
        Route(path="/runningpods/", handler=pods.running_pods, without_debugging=REFUSED),
    ]


def _pages(site: AppState) -> list[Route]:
    pages = Pages(site)
    return [
        Route(path="/configz", handler=pages.configz, without_debugging=ABSENT),
        Route(path="/statusz", handler=pages.statusz),
        Route(path="/flagz", handler=pages.flagz),
    ]


def _streams(site: AppState) -> list[Route]:
    streams, logs = KubeletStreams(site), ContainerLogs(site)
    either = (hdrs.METH_GET, hdrs.METH_POST)
    named, with_uid = "{namespace}/{name}", "{namespace}/{name}/{uid}"
    in_container: tuple[tuple[str, Handler, tuple[str, ...]], ...] = (
        ("run", streams.run, (hdrs.METH_POST,)),
        ("exec", streams.exec, either),
        ("attach", streams.attach, either),
    )
    return [
        *(
            Route(path=f"/{path}/{pod}/{{container}}", handler=handler, methods=methods, without_debugging=REFUSED)
            for path, handler, methods in in_container
            for pod in (named, with_uid)
        ),
        *(
            Route(path=f"/portForward/{pod}", handler=streams.port_forward, methods=either, without_debugging=REFUSED)
            for pod in (named, with_uid)
        ),
        Route(path=f"/containerLogs/{named}/{{container}}", handler=logs.get, without_debugging=REFUSED),
        Route(
            path=f"/checkpoint/{named}/{{container}}",
            handler=streams.checkpoint,
            methods=(hdrs.METH_POST,),
            without_debugging=ABSENT,
        ),
    ]


def _debugging(site: AppState) -> list[Route]:
    logs, profiles, log_levels = NodeLogs(site), Profiles(site), LogLevels(site)
    return [
        Route(path="/logs/", handler=logs.list, without_debugging=REFUSED),
        Route(path="/logs/{path:.+}", handler=logs.file, without_debugging=REFUSED),
        Route(path="/debug/flags/v", methods=ANY_METHOD, handler=log_levels.flags_v, without_debugging=ABSENT),
        Route(path="/debug/pprof/{name:[^/]*}", handler=profiles.get, without_debugging=REFUSED),
    ]


def _manifests(site: AppState) -> list[Route]:
    manifests = Manifests(site)
    return [
        Route(path=path, handler=manifests.post, methods=(hdrs.METH_POST,), without_debugging=ABSENT)
        for path in ("/container", "/containers")
    ]


def _metrics(site: AppState) -> list[Route]:
    metrics = Metrics(site)
    either = (hdrs.METH_GET, hdrs.METH_POST)
    return [Route(path=path, handler=metrics.on(path), methods=either, read_only=True) for path in Endpoint]


def _statistics(site: AppState) -> list[Route]:
    statistics = Statistics(site)
    either = (hdrs.METH_GET, hdrs.METH_POST)
    return [
        Route(path="/stats/", handler=statistics.host, methods=either),
        Route(path="/stats/summary", handler=statistics.summary, read_only=True),
        Route(path="/stats/{name}/{container}", handler=statistics.container, methods=either),
        Route(path="/stats/{namespace}/{name}/{uid}/{container}", handler=statistics.container, methods=either),
        Route(path="/spec/", handler=statistics.machine, read_only=True),
    ]


GROUPS: Final[Sequence[Callable[[AppState], list[Route]]]] = (
    _health,
    _pods,
    _pages,
    _streams,
    _debugging,
    _manifests,
    _metrics,
    _statistics,
)


def kubelet_routes(site: AppState) -> list[Route]:
    """Routes of the kubelet's own server."""
    return [route for group in GROUPS for route in group(site)]


def healthz_routes(site: AppState) -> list[Route]:
    """Routes of the port for health: whether somebody answers (pkg/kubelet/server, healthz of its own port)."""
    health = Health(site, only=("ping",))
    return [
        Route(path="/healthz", methods=ANY_METHOD, handler=health.all),
        Route(path="/healthz/{check}", methods=ANY_METHOD, handler=health.one),
    ]
