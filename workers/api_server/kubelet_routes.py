"""The URLs of the kubelet's server, each once: on the admin socket, the secure port, and some on the read-only port.

Who adds one writes a function ``(site) -> list[Route]`` where the handlers are and names it in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from workers.api_server.core.route import ANY_METHOD, REFUSED, Route
from workers.api_server.handlers.health import Health
from workers.api_server.kubelet.pods import Pods
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
        Route(path="/podInfo", handler=pods.pod_info, read_only=True),
        Route(path="/runningpods/", handler=pods.running_pods, without_debugging=REFUSED),
    ]


GROUPS: Final[Sequence[Callable[[AppState], list[Route]]]] = (_health, _pods)


def kubelet_routes(site: AppState) -> list[Route]:
    """All of them."""
    return [route for group in GROUPS for route in group(site)]


def healthz_routes(site: AppState) -> list[Route]:
    """Those of the port for health: whether somebody answers (pkg/kubelet/server, healthz of its own port)."""
    health = Health(site, only=("ping",))
    return [
        Route(path="/healthz", methods=ANY_METHOD, handler=health.all),
        Route(path="/healthz/{check}", methods=ANY_METHOD, handler=health.one),
    ]
