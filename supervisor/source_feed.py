"""Updates of the sources on their way into the sync loop: whole at the start, then in parts, and a burst of a cluster's
pods before anything is said of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.annotations import API_SOURCE
from ipc.link.eventloop.batch import BatchGate
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.control import message_ids
from supervisor.control.message_ids import line_of_kind
from supervisor.doctor.checks import skipped_manifests
from supervisor.doctor.findings import Finding
from supervisor.processes import sd_notify
from supervisor.protocol.events import LoopEvent, SourcesReady, StatusesDue
from supervisor.protocol.manifests import ManifestError
from supervisor.protocol.source_updates import PodUpdate, Update, in_parts
from supervisor.sources.manager import Change, SourceManager

FIRST_ANSWER_S: Final = 1.0
"""How long the reading of the sources, which takes CPU, waits for the API server to tell of what was restored."""
MAX_NAMED_SECRETS: Final = 20
"""Most names of Secrets in one event."""

log = logging.getLogger(__name__)


class SourceFeed:
    """Reads the sources for as long as the agent lives, and tells of what they state wrongly."""

    def __init__(
        self,
        sources: SourceManager,
        tasks: BackgroundTasks,
        *,
        feed: Callable[[LoopEvent], None],
        node_event: Callable[[EventReason, str], None],
        preflight: Callable[[Finding], None],
        sources_ready: Callable[[], None],
        cluster_listed: Callable[[], None],
    ) -> None:
        """``sources_ready`` is called when each was read once, ``cluster_listed`` after each whole list of the
        cluster's pods."""
        self._sources = sources
        self._tasks = tasks
        self._feed = feed
        self._node_event = node_event
        self._preflight = preflight
        self._sources_ready = sources_ready
        self._cluster_listed = cluster_listed
        self._may_begin = asyncio.Event()
        self._batch = BatchGate()
        """Pods of a cluster that come one right after the other."""
        self._is_batch_open = False
        """First statuses wait for the end of that burst."""

    def may_begin(self) -> None:
        """Begin to read: the API server is there and was told of what was restored, or there is nothing to tell."""
        self._may_begin.set()

    async def run(self) -> None:
        """Feed what the sources state, until this is cancelled."""
        announced = notified = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ANSWER_S):
                await self._may_begin.wait()
        async for change in self._sources.watch():
            await self._take(change, is_whole=not announced)
            del change  # pods that are gone are in it, and the next one may be hours away
            if self._sources.all_ready and not announced:
                announced = True
                self._feed(SourcesReady())
                self._sources_ready()
            if self._sources.own_ready and not notified:
                notified = True
                sd_notify.notify("READY=1")

    async def _take(self, change: Change, *, is_whole: bool) -> None:
        for error in change.errors:
            self._manifest_error(error)
        if change.lost_secrets:
            self._secrets_lost(change.lost_secrets)
        if change.skipped:
            self._preflight(skipped_manifests(change.skipped))
        for update in change.updates:
            await self._feed_update(update, is_whole=is_whole)
        if change.lists_cluster:
            self._feed(StatusesDue())  # a pod without one is none of which anything is left
            self._cluster_listed()
        if change.kill is not None:
            self._feed(change.kill)

    async def _feed_update(self, update: Update, *, is_whole: bool) -> None:
        """In parts, so that the first pods of a burst are with their workers while the last ones are admitted. As a
        whole until every source was read: pods that were evicted before may be anywhere in it, and come first."""
        for number, part in enumerate([update] if is_whole else in_parts(update)):
            if number:
                await asyncio.sleep(0)
            if not is_whole and isinstance(part, PodUpdate) and part.source == API_SOURCE:
                part = self._in_batch(part)
            self._feed(part)

    def _in_batch(self, part: PodUpdate) -> PodUpdate:
        """An update whose pods go to their workers before anything is said of them, and the end of that silence."""
        self._batch.came()
        if not self._is_batch_open:
            self._is_batch_open = True
            self._tasks.spawn(self._end_batch(), name="first statuses of a burst")
        return msgspec.structs.replace(part, is_batched=True)

    async def _end_batch(self) -> None:
        await self._batch.over()
        self._is_batch_open = False
        self._feed(StatusesDue())

    def _secrets_lost(self, names: Sequence[str]) -> None:
        more = f" and {len(names) - MAX_NAMED_SECRETS} more" if len(names) > MAX_NAMED_SECRETS else ""
        named = f"{', '.join(names[:MAX_NAMED_SECRETS])}{more}"
        text = f"applied Secrets are gone since the agent ran last, as after a reboot: {named}: apply them again"
        log.warning("%s", text)
        self._node_event(event_reasons.APPLIED_SECRETS_LOST, text)

    def _manifest_error(self, error: ManifestError) -> None:
        METERS.counter(metrics.MANIFESTS_REFUSED).inc()
        log.warning("manifest refused: %s", error, extra=line_of_kind(message_ids.MANIFEST_REFUSED))
        self._node_event(event_reasons.FAILED_VALIDATION, str(error))
