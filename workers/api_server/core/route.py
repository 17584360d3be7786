"""One URL of the kubelet's server as a value: its handler, and on which of the listeners it is."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec
from aiohttp import hdrs, web

from workers.api_server.core.status_errors import ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ANY_METHOD: Final = (hdrs.METH_ANY,)
REFUSED: Final = 405
ABSENT: Final = 404
"""`Route.without_debugging`."""
NOT_FOUND: Final = "404 page not found\n"
DISABLED: Final = "Debug endpoints are disabled.\n"
TEMPORARY_REDIRECT: Final = 307


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of the kubelet's. All are on the admin socket and on the secure port; an `ApiError` of the handler is
    answered as plain text, as the kubelet does it.

    Which subresource of the node a request needs follows from its path: `workers.api_server.access.attributes`.
    """

    path: str
    """As aiohttp matches it."""
    handler: Handler
    methods: tuple[str, ...] = (hdrs.METH_GET,)
    read_only: bool = False
    """Also on the read-only port."""
    without_debugging: int = 0
    """Status code where debugging handlers are not served: REFUSED (in words) or ABSENT; 0 for one that is none of
    them."""

    @property
    def prefix(self) -> str:
        """The part of the path before its first parameter."""
        return self.path.partition("{")[0]


def plain_text(code: int, text: str, **headers: str) -> web.Response:
    """An answer of the kubelet's in words."""
    return web.Response(status=code, text=text, headers=headers)


def plain_error(error: ApiError) -> web.Response:
    """The error's words without a Status around them."""
    answer = plain_text(error.status.code, error.status.message)
    answer.headers.extend(error.headers)
    return answer


def admin_routes(routes: Sequence[Route]) -> Iterator[web.RouteDef]:
    """Routes of the admin socket: every one there is."""
    return _served(routes, lambda _: True)


def secure_routes(routes: Sequence[Route], *, debugging: bool) -> Iterator[web.RouteDef]:
    """Routes of the secure port (pkg/kubelet/server/server.go, NewServer)."""
    return _served(routes, lambda route: debugging or not route.without_debugging)


def read_only_routes(routes: Sequence[Route]) -> Iterator[web.RouteDef]:
    """Routes of the read-only port, where nothing for debugging is."""
    return _served(routes, lambda route: route.read_only)


def _served(routes: Sequence[Route], wanted: Callable[[Route], bool]) -> Iterator[web.RouteDef]:
    served = [route for route in routes if wanted(route)]
    refused = [route for route in routes if not wanted(route) and route.without_debugging == REFUSED]
    for route in served:
        yield from _definitions(route)
    paths = {route.path for route in served}
    for path in dict.fromkeys(route.path for route in (*served, *refused) if route.path.endswith("/")):
        if path.rstrip("/") not in paths:
            yield web.get(path.rstrip("/"), functools.partial(_to, path=path), allow_head=False)
    for prefix in dict.fromkeys(route.prefix for route in refused):
        yield web.route(hdrs.METH_ANY, prefix + "{rest:.*}", _disabled)


def _definitions(route: Route) -> Iterator[web.RouteDef]:
    handler = functools.partial(_plainly, handler=route.handler)
    for method in route.methods:
        yield web.RouteDef(method, route.path, handler, {"allow_head": False} if method == hdrs.METH_GET else {})


async def _plainly(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return plain_error(error)


async def _disabled(_request: web.Request) -> web.Response:
    return plain_text(405, DISABLED)


async def _to(request: web.Request, path: str) -> web.Response:
    target = f"{path}?{request.query_string}" if request.query_string else path
    body = f'<a href="{path}">Temporary Redirect</a>.\n\n'
    return web.Response(status=TEMPORARY_REDIRECT, text=body, content_type="text/html", headers={hdrs.LOCATION: target})
