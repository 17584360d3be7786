"""Sends the agent's events to the API server, in their order, as long as it takes but not for ever
(client-go tools/record, event.go, recordToSink).

A repetition is a patch, and an event that the server has forgotten by then is made anew. What the server refuses is not
tried again; without an answer an event is tried twelve times. While it waits, only its newest state is kept.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NoReturn

from ipc.host.clock import Clock, parse_rfc3339
from ipc.k8s.api.v1.event import Event
from workers.cluster.events.cluster_event import count_patch, event_body, namespace_of
from workers.cluster.events.spam_filter import SpamFilter
from workers.kubeclient.errors import ApiError, Unreachable
from workers.kubeclient.protocol import STRATEGIC_MERGE_PATCH, Client
from workers.kubeclient.resources import EVENTS

MAX_TRIES: Final = 12
"""Tries of one event (maxTriesPerEvent)."""
PAUSE_S: Final = 10.0
"""Between them (defaultSleepDuration); after the first one a random part of it, lest all nodes come back at once."""
MAX_WAITING: Final = 1000
"""Events that wait; then the oldest goes (maxQueuedEvents, where the newest goes)."""
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
"""Cause of a refusal that needs no words (NamespaceTerminatingCause)."""

_log: Final = logging.getLogger(__name__)


class EventSender:
    """For one event loop."""

    def __init__(
        self, client: Client, node_name: str, clock: Clock, *, chance: Callable[[], float] = random.random
    ) -> None:
        """``client`` has the rate limit of events (eventRecordQPS, eventBurst)."""
        self._client = client
        self._node_name = node_name
        self._clock = clock
        self._chance = chance
        self._spam = SpamFilter()
        self._waiting: OrderedDict[str, Event] = OrderedDict()
        """By name, in the order in which they began to wait."""
        self._history: list[Event] | None = []
        """Events of before this process, until it is known since when the agent lives."""
        self._wake = asyncio.Event()
        self._dropped = 0

    def take(self, event: Event) -> None:
        """An event of the master's feed: new, or seen once more."""
        if self._history is not None:
            self._history.append(event)
        elif self._spam.lets_pass(event, self._clock.now().mono):
            self._put(event)

    def begin(self, started_at: float) -> None:
        """The feed has told of all events that there were. Those of before ``started_at``, when the agent began, in
        seconds of the epoch, were an earlier agent's, who has sent them. The others go: perhaps a process before this
        one has sent them, which the server knows by their names. A second time this does nothing."""
        history, self._history = self._history, None
        for event in history or ():
            if parse_rfc3339(event.last_timestamp or "") >= started_at - 1.0:  # written in whole seconds
                self.take(event)

    def _put(self, event: Event) -> None:
        self._waiting.setdefault(event.metadata.name, event)
        self._waiting[event.metadata.name] = event
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
            self._dropped += 1
        self._wake.set()

    async def run(self) -> NoReturn:
        """Send what waits, for ever."""
        while True:
            while self._waiting:
                _, event = self._waiting.popitem(last=False)
                await self._send(event)
            if self._dropped:
                _log.warning("%d events were not sent: the API server did not keep up", self._dropped)
                self._dropped = 0
            self._wake.clear()
            await self._wake.wait()

    async def _send(self, event: Event) -> None:
        for tries in range(1, MAX_TRIES + 1):
            try:
                await self._record(event)
            except ApiError as error:
                self._tell_refused(event, error)
                return
            except Unreachable as error:
                _log.debug("event %s is not sent, try %d: %s", event.metadata.name, tries, error)
            else:
                return
            if tries < MAX_TRIES:
                await asyncio.sleep(PAUSE_S * (self._chance() if tries == 1 else 1.0))
        self._dropped += 1

    def _tell_refused(self, event: Event, error: ApiError) -> None:
        is_expected = error.has_cause(NAMESPACE_TERMINATING)
        level = logging.DEBUG if is_expected else logging.WARNING
        _log.log(level, "the API server refuses event %s: %s", event.metadata.name, error)

    async def _record(self, event: Event) -> None:
        """Make or patch it. Raises ClusterError."""
        if event.count > 1 and await self._patched(event):
            return
        try:
            body = event_body(event, self._node_name)
            await self._client.request("POST", EVENTS.path(namespace_of(event)), body=body)
        except ApiError as error:
            if not error.already_exists:
                raise
            await self._patched(event)

    async def _patched(self, event: Event) -> bool:
        """Whether the server had it; it forgets events after an hour."""
        path = EVENTS.path(namespace_of(event), event.metadata.name)
        try:
            await self._client.request("PATCH", path, body=count_patch(event), content_type=STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if not error.is_not_found:
                raise
            return False
        return True
