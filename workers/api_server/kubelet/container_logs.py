"""GET /containerLogs/{namespace}/{pod}/{container} (pkg/kubelet/server/server.go, getContainerLogs)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from ipc.k8s.api.pod_containers import find_container
from workers.api_server.core.query import flag
from workers.api_server.core.status_errors import ApiError
from workers.api_server.handlers.log_choice import choose_log
from workers.api_server.handlers.log_files import LogOptions
from workers.api_server.handlers.pod_log import PodLog, log_options
from workers.api_server.kubelet.pod_names import find_pod
from workers.api_server.store.site import AppState

UNDECODABLE: Final = '{"message": "Unable to decode query."}'
INVALID: Final = '{"message": "Invalid request."}'
_NUMBERS: Final = ("tailLines", "sinceSeconds", "limitBytes")
_FLAGS: Final = ("follow", "previous", "timestamps")
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


class ContainerLogs:
    """The handler."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._log = PodLog(site)

    async def get(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        tail = query.pop("tail", "")  # as older clients say it
        if tail:
            query["tailLines"] = "" if tail == "all" else tail
        options = kubelet_log_options(query, self._site.clock.now().wall)
        name = request.match_info["name"]
        pod = await find_pod(self._site, request.match_info["namespace"], name)
        if pod is None:
            raise ApiError(404, f'pod "{name}" does not exist')
        container = request.match_info["container"]
        if find_container(pod.message.pod.spec, container) is None:
            raise ApiError(404, f'container "{container}" not found in pod "{name}"')
        choice = choose_log(pod.message, container, flag(query, "previous"))
        return await self._log.stream(request, pod, choice, options)


def kubelet_log_options(query: Mapping[str, str], now: float) -> LogOptions:
    """v1 PodLogOptions; ``now`` in epoch seconds. Raises ApiError 400 for what is of another type, 422 for what may not
    be."""
    try:
        for name in _FLAGS:
            flag(query, name)
    except ApiError:
        raise ApiError(400, UNDECODABLE) from None
    if any(not _NUMBER.fullmatch(query[name]) for name in _NUMBERS if query.get(name)):
        raise ApiError(400, UNDECODABLE)
    try:
        return log_options(query, now)
    except ApiError:
        raise ApiError(422, INVALID) from None
