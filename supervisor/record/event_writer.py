"""When the event history goes to disk: at most a second after it changed (`supervisor.state.throttled_saver`)."""

from __future__ import annotations

import functools
import logging
from typing import Final

from ipc.host.clock import Clock
from ipc.host.state_file import StateUnusable
from ipc.k8s.api.v1.event import Event
from supervisor.record.event_log import EventLog
from supervisor.record.recorder import EventRecorder
from supervisor.state.throttled_saver import ThrottledSaver, Write

RETRY_S: Final = 10.0
"""After a write that failed, in seconds."""

log = logging.getLogger(__name__)


class EventWriter:
    """Owns the file. The history stays its recorder's."""

    def __init__(self, log_file: EventLog, clock: Clock) -> None:
        self._log = log_file
        self._saver = ThrottledSaver("events", 0, clock, log, retry_s=RETRY_S)
        """The version of the history is its sequence number."""

    def restore(self) -> tuple[Event, ...]:
        """Events that an earlier agent has written."""
        try:
            return self._log.load()
        except StateUnusable as error:
            log.error("%s", error)
            return ()

    def keep(self, history: EventRecorder) -> None:
        """Write what is new. To be called every second."""
        self._saver.keep(lambda: history.sequence, lambda _: self._write(history))

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._saver.write_again()

    async def close(self, history: EventRecorder) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: history.sequence, lambda _: self._write(history))

    def _write(self, history: EventRecorder) -> Write:
        return functools.partial(self._log.write, history.changed_after(self._saver.written), history.events())
