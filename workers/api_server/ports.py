"""The kubelet's server on TCP: its ports, what is served on each, its connections. Imported where a port is on."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ipc.link.wire.boot import ChildContext
from ipc.link.wire.server_settings import Port, ServerSettings
from workers.api_server.access.certificates import Certificates, NoCertificate
from workers.api_server.access.filter import AccessFilter
from workers.api_server.audit import audited, note_answer
from workers.api_server.core.port_listener import PortListener
from workers.api_server.core.route import Route, admin_routes, read_only_routes, secure_routes
from workers.api_server.handlers.request_counts import counted
from workers.api_server.kubelet_routes import healthz_routes
from workers.api_server.middleware import InFlight, bounded, plain_texts, without_server_header
from workers.api_server.store.bodies import MAX_BODY_BYTES, add_routes, close_untold
from workers.api_server.store.site import AppState

if TYPE_CHECKING:
    from workers.api_server.access.webhook import ClusterReviews

MAX_REQUESTS: Final = 32
MAX_STREAMS: Final = 64
MAX_SESSIONS: Final = 100
"""Most at once on all ports, of each kind (`middleware.Load`): half of what the admin socket has for itself."""

_log: Final = logging.getLogger(__name__)

Run = Callable[[web.Application], Awaitable[web.AppRunner]]


class Ports:
    """The open ports of one API server."""

    def __init__(self, runners: Sequence[web.AppRunner], listeners: Sequence[PortListener]) -> None:
        self.listeners = listeners
        self._runners = runners

    @classmethod
    async def opened(cls, context: ChildContext, site: AppState, routes: Sequence[Route], run: Run) -> Ports:
        """Serve each port that is on. ``run`` makes an application ready."""
        settings = context.settings.server
        newest = functools.partial(Certificates(settings, site.clock).newest, site.files)
        if Port.SECURE in settings.ports:
            with contextlib.suppress(NoCertificate):  # it was told
                await newest()
        runners, listeners = [], []
        for port, app in applications(site, routes, settings).items():
            runners.append(await run(app))
            tls = newest if port is Port.SECURE else None
            listening = context.ports[settings.ports.index(port)]
            listeners.append(PortListener(server_of(runners[-1]), listening, tls))
        for listener in listeners:
            listener.open()
        if Port.SECURE in settings.ports and settings.anonymous and settings.rules is None:
            _log.warning(
                "everybody who reaches the secure port may run commands in containers: set authorization.rules"
            )
        return cls(runners, listeners)

    async def close(self) -> None:
        """Let nobody in, and end what is under way."""
        for listener in self.listeners:
            await listener.aclose()
        for runner in self._runners:
            await runner.cleanup()


def server_of(runner: web.AppRunner) -> web.Server:
    """The server of a runner that was set up."""
    assert runner.server is not None, "it was set up"
    return runner.server


_COUNTED: Final[Mapping[Port, Middleware]] = {
    Port.SECURE: counted("readwrite"),
    Port.READ_ONLY: counted("readonly"),
    Port.HEALTHZ: counted("readonly"),
}
"""Each port's requests by the kubelet's word for the server (pkg/kubelet/server/server.go)."""


def applications(site: AppState, routes: Sequence[Route], settings: ServerSettings) -> Mapping[Port, web.Application]:
    """The HTTP side of each port that is on, without a socket."""
    limits = InFlight(MAX_REQUESTS, MAX_STREAMS, MAX_SESSIONS)
    reviews = _reviews(site, settings)
    before: Mapping[Port, tuple[Middleware, ...]] = {
        Port.SECURE: (AccessFilter(settings, site.files, reviews).filtered, *audited(site))
    }
    served: Mapping[Port, Iterable[web.RouteDef]] = {
        Port.SECURE: secure_routes(routes, debugging=settings.debugging),
        Port.READ_ONLY: read_only_routes(routes),
        Port.HEALTHZ: admin_routes(healthz_routes(site)),
    }
    made = {
        port: _application(site, settings, (_COUNTED[port], *before.get(port, ()), limits.limited), served[port])
        for port in settings.ports
    }
    if reviews is not None and Port.SECURE in made:
        made[Port.SECURE].on_cleanup.append(reviews.closed)
    return made


def _reviews(site: AppState, settings: ServerSettings) -> ClusterReviews | None:
    """The cluster, where it is asked about users. Its client is imported only there."""
    if not (settings.reviews_tokens or settings.reviews_access):
        return None
    from workers.api_server.access.webhook import ClusterReviews

    cluster = site.settings.cluster
    assert cluster is not None, "the settings were checked"
    return ClusterReviews(
        settings.kubeconfig, site.settings.node_name, site.clock, float(cluster.api_qps), cluster.api_burst
    )


def _application(
    site: AppState, settings: ServerSettings, middlewares: Iterable[Middleware], routes: Iterable[web.RouteDef]
) -> web.Application:
    app = web.Application(
        client_max_size=MAX_BODY_BYTES,
        middlewares=[plain_texts, bounded(settings.streaming_idle_timeout_s), *middlewares],
    )
    add_routes(app, routes)
    app.on_response_prepare.extend((close_untold, without_server_header, note_answer))
    app.on_shutdown.append(site.sockets.stop)
    return app
