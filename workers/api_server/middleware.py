"""What every request passes: who asks, how many ask at once, and errors in the shape that kubectl reads."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from workers.api_server.peers import SocketLike, may_speak, peer_uid
from workers.api_server.query import flag
from workers.api_server.site import status_answer
from workers.api_server.status_errors import ApiError, failure, too_many

MAX_REQUESTS: Final = 64
"""Most short requests under way at once."""
MAX_STREAMS: Final = 128
"""Most watches and followed logs at once."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LOG: Final = logging.getLogger(__name__)


@web.middleware
async def statuses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every failure is answered with a v1 Status; in the middle of a stream it can only end it."""
    try:
        return await handler(request)
    except ApiError as error:
        return status_answer(error.status)
    except web.HTTPException as error:
        answer = status_answer(failure(error.status, _words(request, error)))
        if isinstance(error, web.HTTPMethodNotAllowed):
            answer.headers["Allow"] = ",".join(sorted(error.allowed_methods))
        return answer
    except ConnectionError:
        return web.Response()  # The client has gone: nobody will see this.
    except Exception:
        if request.writer.output_size:
            raise  # The server closes the connection and logs it.
        _LOG.exception("%s %s failed", request.method, request.path)
        return status_answer(failure(500, "the API server failed on this request; its log says how"))


@web.middleware
async def own_users_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """SO_PEERCRED: nobody else is answered, whatever the socket file's mode says by now."""
    sock: SocketLike | None = None if request.transport is None else request.transport.get_extra_info("socket")
    uid = -1 if sock is None else peer_uid(sock)
    if not may_speak(uid):
        _LOG.warning("refused a request of uid %d", uid)
        raise ApiError(403, f"uid {uid} may not administer this agent")
    return await handler(request)


class InFlight:
    """Counts requests under way; long-lived ones apart, so that they cannot crowd out the others."""

    def __init__(self, max_requests: int = MAX_REQUESTS, max_streams: int = MAX_STREAMS) -> None:
        self._free = {False: max_requests, True: max_streams}

    @web.middleware
    async def limited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Raises ApiError 429 when there are too many already."""
        streams = flag(request.query, "watch") or flag(request.query, "follow")
        if self._free[streams] <= 0:
            raise too_many(f"too many {'watches and followed logs' if streams else 'requests'} at once")
        self._free[streams] -= 1
        try:
            return await handler(request)
        finally:
            self._free[streams] += 1


def _words(request: web.Request, error: web.HTTPException) -> str:
    known = {
        404: f"the server could not find the requested resource: {request.path}",
        405: f"the server does not allow {request.method} on {request.path}",
    }
    return known.get(error.status) or error.text or error.reason
