"""The evented PLEG requests observations of single pods by Podman's events.

Mirrors pkg/kubelet/pleg/evented.go. Different on purpose: an event is only a hint, and says nothing of a pod's state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from ipc.host.clock import Clock
from ipc.link.eventloop.tasks import note_failure
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.labels import read_uid
from workers.kubecontainer.runtime import Runtime, RuntimeCallError, RuntimeEvent
from workers.pleg.generic import REMOVAL_S, GenericPLEG
from workers.pleg.relist_schedule import RETRIES

HINTS: Final[Mapping[str, float]] = {
    "died": 0.0,
    "remove": REMOVAL_S,
    "start": 0.5,
    "restart": 0.5,
    "pause": 0.5,
    "unpause": 0.5,
}
"""Podman's events after which a pod is observed, and the delay before that, in seconds. A container that starts was
most likely started by a sync, whose end requests an observation of its own and makes this one unnecessary; so is one
that is removed."""
SYNC_S: Final = 3.0
"""The delay for a container that nobody knows and that starts, in seconds: the sync that has made it tells of it in its
end. A sandbox's starts well before that, and many pods that start together take Podman long."""
_LAST_EVENTS: Final = frozenset({"died", "remove"})
"""Events that say nothing of a container that nobody knows: it is gone, or an earlier event is of it."""

log = logging.getLogger(__name__)


class EventedPLEG:
    """Follows Podman's events."""

    def __init__(self, runtime: Runtime, clock: Clock, generic: GenericPLEG) -> None:
        self._runtime = runtime
        self._clock = clock
        self._generic = generic
        self._known, self._touched = generic.known, generic.observer.touched

    async def watch(self) -> None:
        """Follow Podman's events for ever. A relist finds what happened while the stream was broken."""
        failures = 0
        while True:
            try:
                async for event in self._runtime.events():
                    failures = 0
                    self._hint(event)
                why = "it ended"
            except RuntimeCallError as error:
                why = str(error)
            except Exception as error:
                note_failure("an event of Podman's", error)
                why = f"unexpected {type(error).__name__}"
            failures += 1
            METERS.counter(metrics.EVENT_STREAM_ERRORS).inc()
            level = logging.INFO if self._generic.lost_events() else logging.DEBUG
            log.log(level, "Podman's stream of events broke: %s", why)
            await asyncio.sleep(RETRIES.pause_s(failures))
            self._generic.request_relist()

    def _hint(self, event: RuntimeEvent) -> None:
        if event.container_id in self._known.unknown_containers:
            return
        uid, delay_s, now = read_uid(event.labels), HINTS.get(event.action), self._clock.now()
        if event.action == "died" and self._known.knows_end(event.container_id):
            return
        if not uid or delay_s is None or self._known.has_inspected_since(event.container_id, event.time):
            return
        if event.action == "died" and self._known.has_ended(uid):
            delay_s = REMOVAL_S
        is_known = event.container_id in self._known.inspected
        if event.action in _LAST_EVENTS and not is_known:
            return
        if event.action == "start" and not is_known:
            delay_s = SYNC_S
        self._touched.hint(uid, event.container_id, event.time)
        self._generic.request(uid, now.mono + delay_s if delay_s else 0.0)
