"""Statistics by HTTP: the summary API, the first kubelet's /stats/ and /spec/, and our own snapshot with its sources.

Mirrors pkg/kubelet/server/stats/handler.go, and its first version for what the present one has dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from aiohttp import web

from ipc.host.text.json_types import UNDECODABLE
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import ApiError, bad_request
from workers.api_server.store.bodies import read_body
from workers.api_server.store.site import AppState, json_answer
from workers.api_server.store.statistics import WAIT_S
from workers.stats.machine import read_machine
from workers.statsapi.container_info import DEFAULT_SAMPLES, ContainerInfoRequest, container_info, host_info
from workers.statsapi.summary import summary
from workers.statsapi.values import ContainerSample, PodSample, Snapshot, with_names

DEFAULT_NAMESPACE: Final = "default"
_REQUEST: Final = msgspec.json.Decoder(ContainerInfoRequest)


class Statistics:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def summary(self, request: web.Request) -> web.Response:
        only = flag(request.query, "only_cpu_and_memory")
        snapshot = await self._site.statistics.snapshot(rates=True)
        return json_answer(summary(snapshot, only_cpu_and_memory=only))

    async def snapshot(self, request: web.Request) -> web.Response:
        wait_s = integer(request.query, "timeoutSeconds", low=1, high=int(WAIT_S))
        return json_answer(with_names(await self._site.statistics.snapshot(rates=True, wait_s=wait_s or WAIT_S)))

    async def host(self, request: web.Request) -> web.Response:
        wanted = await _wanted_samples(request)
        return json_answer(host_info([snapshot.node for snapshot in await self._history(wanted)]))

    async def container(self, request: web.Request) -> web.Response:
        wanted = await _wanted_samples(request)
        place = request.match_info
        history = await self._history(wanted)
        pod = next((pod for pod in history[-1].pods if _is_named(pod, place)), None)
        if pod is None:
            raise ApiError(404, "Pod not found")
        container = next((c for c in pod.containers if c.name == place["container"]), None)
        if container is None:
            raise ApiError(404, f'container "{place["container"]}" not found in pod "{pod.name}"')
        return json_answer(container_info(pod, container, _samples(history, pod.uid, container.id)))

    async def machine(self, _request: web.Request) -> web.Response:
        node = (await self._site.statistics.snapshot()).node
        systems = tuple(fs for fs in (node.fs, node.image_fs) if fs is not None)
        return json_answer(await asyncio.to_thread(read_machine, systems))

    async def _history(self, count: int) -> Sequence[Snapshot]:
        return await self._site.statistics.history(count if count >= 0 else DEFAULT_SAMPLES)


def _is_named(pod: PodSample, place: Mapping[str, str]) -> bool:
    """Whether a URL means that pod. Without a UID any will do, without a namespace the default one's."""
    return (
        pod.name == place["name"]
        and pod.namespace == place.get("namespace", DEFAULT_NAMESPACE)
        and pod.uid == place.get("uid", pod.uid)
    )


def _samples(history: Sequence[Snapshot], uid: str, container_id: str) -> list[ContainerSample]:
    """Samples of that container, oldest first."""
    return [
        container
        for snapshot in history
        for pod in snapshot.pods
        if pod.uid == uid
        for container in pod.containers
        if container.id == container_id
    ]


async def _wanted_samples(request: web.Request) -> int:
    """How many samples a request asks for. Raises ApiError 400."""
    body = await read_body(request) if request.can_read_body else b""
    if not body:
        return DEFAULT_SAMPLES
    try:
        return _REQUEST.decode(body).num_stats
    except UNDECODABLE as error:
        raise bad_request(f"the request's body is no ContainerInfoRequest: {error}") from None
