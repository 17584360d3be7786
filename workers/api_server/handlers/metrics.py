"""The paths of metrics: what was counted and what is read now, as text or OpenMetrics, compressed on request."""

from __future__ import annotations

import asyncio
import functools
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import hdrs, web

from ipc.link.messages.api_server import AgentChanged, PodChanged
from ipc.link.metrics.model import Endpoint
from ipc.link.shm.metric_cells import METERS
from workers.api_server.core.status_errors import ApiError
from workers.api_server.handlers.health import Health
from workers.api_server.handlers.request_counts import inflight
from workers.api_server.store.objects import StoredObject
from workers.api_server.store.site import AppState
from workers.statsapi.values import Snapshot

if TYPE_CHECKING:
    from workers.api_server.metrics.exposition import Family, Format

GZIP_LEVEL: Final = 1
"""A scrape is read once, by a process near by: a fifteenth of its size for a hundredth of the time that it takes."""
GZIP_FORMAT: Final = zlib.MAX_WBITS | 16
"""Python's own module of that name would be another 60 KiB."""

_WAITS: Final = {Endpoint.METRICS: 0.1, Endpoint.RESOURCE: 5.0, Endpoint.CADVISOR: 5.0}
"""How long a path waits for statistics, in seconds."""

NAMES: Final = "name[]"
"""Parameter of a request that wants some families alone, as Prometheus' client libraries have it; kubelets do not."""

Handler = Callable[[web.Request], Awaitable[web.Response]]


class _Question(msgspec.Struct, frozen=True):
    """State of the API server at a scrape, taken on the loop; the rest is found out in a thread."""

    endpoint: Endpoint
    agent: AgentChanged
    pods: Sequence[StoredObject[PodChanged]]
    problems: dict[str, str]
    """Problems of health checks, on their path."""
    snapshot: Snapshot | None
    """Statistics, on their paths and for the sizes of logs."""
    names: frozenset[str]
    """Families that the request names; none for all."""


class Metrics:
    """The handlers. What they need is imported at the first scrape."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._health = Health(site)

    def on(self, endpoint: Endpoint) -> Handler:
        """Handler of one path."""
        return functools.partial(self._answer, endpoint=endpoint)

    async def _answer(self, request: web.Request, endpoint: Endpoint) -> web.Response:
        agent, store = await self._site.agent(), await self._site.synced()
        names = frozenset(request.query.getall(NAMES, ()))
        question = _Question(
            endpoint,
            agent,
            store.pods.select(lambda _: True),
            self._health.problems() if endpoint is Endpoint.SLIS else {},
            await self._snapshot(endpoint, names),
            names,
        )
        accept, packed = request.headers.get(hdrs.ACCEPT, ""), "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, "")
        body, content_type = await asyncio.to_thread(self._render, question, accept, packed=packed)
        headers = {hdrs.CONTENT_TYPE: content_type, **({hdrs.CONTENT_ENCODING: "gzip"} if packed else {})}
        return web.Response(body=body, headers=headers)

    async def _snapshot(self, endpoint: Endpoint, names: frozenset[str]) -> Snapshot | None:
        """None where none is needed or to be had. For the sizes of logs alone nobody waits, and nothing goes on."""
        wait_s = _WAITS.get(endpoint)
        if wait_s is None or (names and not _has_statistics(names)):
            return None
        try:
            async with asyncio.timeout(wait_s):
                if endpoint is Endpoint.METRICS:
                    return await self._site.statistics.snapshot(wait_s=wait_s / 2, lasting=False)
                return await self._site.statistics.snapshot()
        except (TimeoutError, ApiError):
            return None

    def _render(self, question: _Question, accept: str, *, packed: bool) -> tuple[bytes, str]:
        """Body and Content-Type. In a thread: it decodes pods, and reads /proc."""
        from workers.api_server.metrics import exposition

        form = exposition.negotiated(accept)
        families, names = self._families(question, form), question.names
        body = exposition.render((each for each in families if not names or each.metric.name in names), form)
        return zlib.compress(body, GZIP_LEVEL, GZIP_FORMAT) if packed else body, form.value

    def _families(self, question: _Question, form: Format) -> Iterator[Family]:
        from workers.api_server.metrics import agent as read
        from workers.api_server.metrics import counted, statistics
        from workers.statsapi.metrics import CADVISOR_ERROR, SCRAPE_ERROR

        snapshot, board = question.snapshot, self._site.board
        rows = board.metrics.read(METERS.row)
        names = read.worker_names(question.agent, rows, board.worker_slots)
        if question.endpoint is Endpoint.RESOURCE:
            yield from statistics.resource_families(snapshot) if snapshot else statistics.no_statistics(SCRAPE_ERROR)
            return
        if question.endpoint is Endpoint.CADVISOR:
            yield from statistics.cadvisor_families(snapshot) if snapshot else statistics.no_statistics(CADVISOR_ERROR)
            return
        yield read.start_time_family(question.agent)
        yield from counted.counted_families(rows, question.endpoint, form, names.__getitem__)
        if question.endpoint is Endpoint.SLIS:
            yield read.health_family(question.problems)
        elif question.endpoint is Endpoint.PROBES:
            yield from counted.probe_families((stored.message for stored in question.pods), board.probes, form)
        elif question.endpoint is Endpoint.METRICS:
            yield from read.agent_families(question.agent)
            yield from read.pod_families([stored.message for stored in question.pods])
            yield from read.worker_families(question.agent, board, self._site.clock.now().mono)
            yield from read.process_families(question.agent, rows)
            yield read.inflight_family(inflight())
            if snapshot is not None:
                yield statistics.log_family(snapshot)
                yield from statistics.claim_families(snapshot)


def _has_statistics(names: frozenset[str]) -> bool:
    from workers.statsapi.metrics import METRICS

    return any(metric.name in names for metric in METRICS)
