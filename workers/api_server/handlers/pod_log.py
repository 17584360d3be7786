"""GET .../pods/{name}/log: finds the file of the container's life that is meant, and streams it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from ipc.host.clock import parse_rfc3339
from ipc.link.messages.api_server import PodChanged
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import ApiError, bad_request
from workers.api_server.handlers.log_choice import LogChoice, choose_log, has_ended, log_path
from workers.api_server.handlers.log_files import LogOptions, UnreadableLog, stream_log
from workers.api_server.store.objects import StoredObject
from workers.api_server.store.site import AppState, begin_stream, break_off
from workers.logs.open_log import OpenLog

ALL_STREAMS: Final = "All"
_STREAMS: Final = {ALL_STREAMS: "", "Stdout": "stdout", "Stderr": "stderr"}
"""Choices of core/v1 PodLogOptions, and their names in a log."""
_LOG: Final = logging.getLogger(__name__)


class PodLog:
    """The handler."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def get(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        pod = await self._site.pod(request)
        choice = choose_log(pod.message, query.get("container", ""), flag(query, "previous"))
        return await self.stream(request, pod, choice, log_options(query, self._site.clock.now().wall))

    async def stream(
        self, request: web.Request, pod: StoredObject[PodChanged], choice: LogChoice, options: LogOptions
    ) -> web.StreamResponse:
        """The log of that life. Raises ApiError."""

        def ended() -> bool:
            now = self._site.store.pods.get(pod.key)
            return has_ended(None if now is None else now.message, choice)

        log = OpenLog(
            self._site.files, self._site.logs_dir, log_path(self._site.logs_dir, pod.message, choice), options.since
        )
        try:
            await _begin(log, options)
            response = await begin_stream(request, "text/plain")
            await stream_log(log, options, ended, response.write)
        except UnreadableLog as error:
            _LOG.warning("the log of pod %s cannot be read on: %s", pod.key, error)
            raise break_off(request) from None
        finally:
            await log.close()
        return response


def log_options(query: Mapping[str, str], now: float) -> LogOptions:
    """v1 PodLogOptions out of a query; ``now`` in epoch seconds. Raises ApiError 400."""
    since_s, since_time = integer(query, "sinceSeconds", low=1), query.get("sinceTime", "")
    if since_s is not None and since_time:
        raise bad_request("at most one of sinceTime or sinceSeconds may be specified")
    since = now - since_s if since_s is not None else 0.0
    if since_time:
        try:
            since = parse_rfc3339(since_time)
        except ValueError as error:
            raise bad_request(f"sinceTime: {error}") from None
    return LogOptions(
        follow=flag(query, "follow"),
        timestamps=flag(query, "timestamps"),
        tail_lines=integer(query, "tailLines"),
        since=since,
        limit_bytes=integer(query, "limitBytes", low=1),
        stream=_stream(query),
    )


def _stream(query: Mapping[str, str]) -> str:
    """(pkg/apis/core/validation, validatePodLogOptions)"""
    stream = query.get("stream") or ALL_STREAMS
    if stream not in _STREAMS:
        raise bad_request(f"stream: must be one of {', '.join(_STREAMS)}")
    if stream != ALL_STREAMS and query.get("tailLines"):
        raise bad_request("`tailLines` and specific `stream` are mutually exclusive for now")
    return _STREAMS[stream]


async def _begin(log: OpenLog, options: LogOptions) -> None:
    """Open the log, and go to where the options begin. Raises ApiError."""
    try:
        await log.open()
        if options.tail_lines is not None:
            await log.skip_to_tail(options.tail_lines)
        elif options.since:
            await log.skip_to_time()
    except TimeoutError:
        raise ApiError(504, f"there is no answer from the file system of {log.path}") from None
    except OSError as error:
        name, place = log.path.name, log.path.parent
        raise ApiError(404, f"there is no log {name} in {place}: {error.strerror or error}") from None
