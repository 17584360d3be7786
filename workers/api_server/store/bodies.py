"""Bodies of requests: bounded, and asked for when they are wanted.

A client that waits with its body (``Expect: 100-continue``) is told to go on behind every check of its request, as Go's
net/http does it (server.go, expectContinueReader). aiohttp would tell it as soon as the request's head was read, also
somebody who may not be here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_writer import HttpVersion11

from workers.api_server.core.request_keys import TOLD_TO_GO_ON
from workers.api_server.core.status_errors import ApiError

MAX_BODY_BYTES: Final = 1024 * 1024
"""Largest body of a request."""
BODY_TIMEOUT_S: Final = 30.0
"""How long a client may take to send its body."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CONTINUE_WORD: Final = "100-continue"


def add_routes(app: web.Application, routes: Iterable[web.RouteDef]) -> None:
    """Add these routes, and one for every other request: no client is told to go on before its request is checked."""
    for route in routes:
        app.router.add_route(route.method, route.path, route.handler, expect_handler=_say_nothing_yet)
    app.router.add_route(hdrs.METH_ANY, "/{rest:.*}", _refuse, expect_handler=_say_nothing_yet)


async def _say_nothing_yet(request: web.Request) -> None:
    """Raises HTTPExpectationFailed for an expectation that nobody knows."""
    if request.version == HttpVersion11 and not _expects_word(request):
        raise web.HTTPExpectationFailed


async def _refuse(request: web.Request) -> web.StreamResponse:
    """As aiohttp's own router: 405 for a path that has other methods, else 404."""
    own = request.match_info.route.resource
    methods = [(await each.resolve(request))[1] for each in request.app.router.resources() if each is not own]
    if allowed := set[str]().union(*methods):
        raise web.HTTPMethodNotAllowed(request.method, allowed)
    raise web.HTTPNotFound


async def tell_to_go_on(request: web.Request) -> None:
    """Tell a client that waits with its body. Call it before the body is read; a second call says nothing."""
    if not _expects_word(request) or request.get(TOLD_TO_GO_ON) or request.content.total_bytes:
        return
    request[TOLD_TO_GO_ON] = True
    await request.writer.write(CONTINUE)
    request.writer.output_size = 0  # the answer has not begun


async def read_body(request: web.Request) -> bytes:
    """The whole body, of a client that waits with it, too. Raises ApiError 408; the application's own limit answers
    413, before the client is told to go on where it says how much it has."""
    if (stated := request.content_length or 0) > MAX_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(max_size=MAX_BODY_BYTES, actual_size=stated)
    await tell_to_go_on(request)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except TimeoutError:
        raise ApiError(408, f"the body was not sent within {BODY_TIMEOUT_S:g} s") from None


async def close_untold(request: web.Request, response: web.StreamResponse) -> None:
    """A signal's receiver: a client that was not told may send its body or another request. Nobody can tell which."""
    if _expects_word(request) and not request.get(TOLD_TO_GO_ON):
        response.force_close()
        response.headers[hdrs.CONNECTION] = "close"  # aiohttp has written its own headers by now


def _expects_word(request: web.BaseRequest) -> bool:
    return request.headers.get(hdrs.EXPECT, "").lower() == _CONTINUE_WORD
