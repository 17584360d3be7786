"""The HTTP server's log: each request when that is asked for, and those that are no HTTP in one line instead of a
traceback."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Final

from aiohttp import hdrs, web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.http_exceptions import HttpProcessingError

from ipc.host.log.entry import line_with
from workers.api_server.core.request_keys import USER
from workers.proc.peers import peer_ids

MALFORMED: Final = (HttpProcessingError, web.RequestPayloadError)
"""A client's errors: of the request's head, and of its body."""
MAX_WORDS_CHARS: Final = 200
"""How much of an error is logged, in characters: it quotes what the client has sent."""


class _OneLine(logging.Filter):
    """Takes the traceback away from a client's errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MALFORMED):
            words = ascii(" ".join(str(error).split()))[1:-1]
            record.msg, record.args = "refused a malformed request: %s", (words[:MAX_WORDS_CHARS],)
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
            record.exc_info = record.exc_text = None
        return True


HTTP_LOG: Final = logging.getLogger(__name__)
"""For aiohttp's server."""
HTTP_LOG.addFilter(_OneLine())

Field = tuple[str, str | int | float]


class RequestLog(AbstractAccessLogger):
    """A line for each answered request while debug lines of this module are wanted, with the keys of the API servers
    (apiserver/pkg/server/httplog/httplog.go). Of the URL there is the path alone: commands and tokens stand behind it.
    """

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        """``time``: how long it took, in seconds."""
        if self.logger.isEnabledFor(logging.DEBUG):
            self.logger.debug("HTTP", extra=line_with(**dict(_fields(request, response, time))))


def _fields(request: web.BaseRequest, response: web.StreamResponse, took_s: float) -> Iterator[Field]:
    yield "verb", request.method
    yield "URI", request.path
    yield "latency", f"{took_s * 1000:.3f}ms"
    yield "userAgent", request.headers.get(hdrs.USER_AGENT, "")
    yield from _client(request)
    yield "resp", response.status
    yield "bytes", response.body_length


def _client(request: web.BaseRequest) -> Iterator[Field]:
    """Address, or process and user as the kernel has noted them; and the name of a user who was authenticated."""
    sock = None if request.transport is None else request.transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        pid, uid = peer_ids(sock)
        yield "peerPID", pid
        yield "peerUID", uid
    elif request.remote:
        yield "srcIP", request.remote
    if user := request.get(USER):
        yield "user", user
