"""Checks of every request: the peer, the number of requests at once, and errors in the shape that kubectl reads."""

from __future__ import annotations

import enum
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from workers.api_server.core.connection_guard import IDLE_TIMEOUT_S, ConnectionGuard
from workers.api_server.core.query import flag
from workers.api_server.core.route import NOT_FOUND, plain_error
from workers.api_server.core.status_errors import ApiError, too_many
from workers.api_server.store.site import status_answer
from workers.proc.peers import SocketLike, may_speak, peer_uid

MAX_REQUESTS: Final = 64
"""Most short requests under way at once."""
MAX_STREAMS: Final = 128
"""Most watches and followed logs at once."""
MAX_SESSIONS: Final = 200
"""Most commands, attached clients and forwarded connections at once. Each has up to three descriptors, of the usual
1024, and buffers of at most 1 MiB: what aiohttp reads ahead of its client, and one message each way."""


class Load(enum.Enum):
    """Kinds of request by what they occupy, and how long; the value names them to people."""

    SHORT = "requests"
    STREAM = "watches and followed logs"
    SESSION = "exec, attach and port-forward streams"


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Words = Callable[[web.Request, web.HTTPException], str]
_LOG: Final = logging.getLogger(__name__)


def failures(answer: Callable[[ApiError], web.Response], words: Words) -> Middleware:
    """A middleware that answers every failure; in the middle of a stream it can only end it. ``words`` are for what
    aiohttp itself refuses."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return answer(error)
        except web.HTTPException as error:
            answered = answer(ApiError(error.status, words(request, error)))
            if isinstance(error, web.HTTPMethodNotAllowed):
                answered.headers["Allow"] = ",".join(sorted(error.allowed_methods))
            return answered
        except web.RequestPayloadError as error:
            return answer(ApiError(400, f"the request's body cannot be read: {' '.join(str(error).split())}"))
        except ConnectionError:
            return web.Response()  # The client has gone: nobody will see this.
        except Exception:
            if request.writer.output_size:
                raise  # The server closes the connection and logs it.
            _LOG.exception("%s %s failed", request.method, request.path)
            return answer(ApiError(500, "the API server failed on this request; its log says how"))

    return middleware


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

    def __init__(
        self, max_requests: int = MAX_REQUESTS, max_streams: int = MAX_STREAMS, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._free = {Load.SHORT: max_requests, Load.STREAM: max_streams, Load.SESSION: max_sessions}

    @web.middleware
    async def limited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Raises ApiError 429 when there are too many already."""
        load = _load(request)
        if self._free[load] <= 0:
            raise too_many(f"too many {load.value} at once")
        self._free[load] -= 1
        try:
            return await handler(request)
        finally:
            self._free[load] += 1


def _load(request: web.Request) -> Load:
    if hdrs.UPGRADE in request.headers:
        return Load.SESSION
    return Load.STREAM if any(_is_on(request.query, name) for name in ("watch", "follow")) else Load.SHORT


def _is_on(query: Mapping[str, str], name: str) -> bool:
    """A value that is no boolean is for the handler to refuse, in its own words."""
    try:
        return flag(query, name)
    except ApiError:
        return False


def bounded(stall_timeout_s: float) -> Middleware:
    """A middleware that tells the connection's guard of each request. A stream's client may leave what it is sent
    unread for ``stall_timeout_s``."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        guard = None if request.transport is None else request.transport.get_protocol()
        if not isinstance(guard, ConnectionGuard):
            raise TypeError(f"nothing bounds the connection of {type(guard).__name__}")
        guard.begin(IDLE_TIMEOUT_S if _load(request) is Load.SHORT else stall_timeout_s)
        try:
            return await handler(request)
        finally:
            guard.end()

    return middleware


async def without_server_header(_request: web.Request, response: web.StreamResponse) -> None:
    """A signal's receiver: nobody need know of which version we are."""
    response.headers.popall(hdrs.SERVER, None)


def _kubernetes_words(request: web.Request, error: web.HTTPException) -> str:
    known = {
        404: f"the server could not find the requested resource: {request.path}",
        405: f"the server does not allow {request.method} on {request.path}",
    }
    return known.get(error.status) or error.text or error.reason


def _kubelets_words(_request: web.Request, error: web.HTTPException) -> str:
    """The words of Go's mux and of go-restful."""
    known = {404: NOT_FOUND, 405: "405: Method Not Allowed"}
    return known.get(error.status) or error.text or error.reason


def _status(error: ApiError) -> web.Response:
    answer = status_answer(error.status)
    answer.headers.extend(error.headers)
    return answer


statuses: Final = failures(_status, _kubernetes_words)
"""Failures as a v1 Status, for the admin socket."""
plain_texts: Final = failures(plain_error, _kubelets_words)
"""Failures in the kubelet's words, for its ports."""
