"""The node's shutdown as the master has it: logind's notice in, the state on disk and the agent's end out."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.config.settings import Settings
from supervisor.control.shutdown_watch import ShutdownWatch
from supervisor.managers.node_shutdown import shutdown_classes
from supervisor.protocol.commands import ShutdownChanged
from supervisor.protocol.events import LoopEvent, NodeShutdownBegan, NodeShutdownCalledOff, ShutdownCause
from supervisor.state.shutdown_state import StoredShutdown, boot_id, restore_shutdown, save_shutdown

log = logging.getLogger(__name__)


class ShutdownControl:
    """Owns the state of the shutdown, and logind's watch."""

    def __init__(self, settings: Settings, feed: Callable[[LoopEvent], None], end: Callable[[], None]) -> None:
        self._directory = settings.state_dir
        self._feed = feed
        self._end = end
        self._boot_id = boot_id()
        self._state = ShutdownChanged()
        self._ends_with_it = False
        wanted_s = sum(item.shutdown_grace_period_seconds for item in shutdown_classes(settings))
        self._watch = ShutdownWatch(wanted_s, self.noticed) if wanted_s else None

    @property
    def cause(self) -> str:
        """Why the node goes down; empty while it does not."""
        return self._state.cause or ""

    @property
    def is_drained(self) -> bool:
        """Somebody has drained the node."""
        return self._state.drained

    def restore(self) -> None:
        """Go on with what an earlier agent has begun since the host's start. Whether the host still goes down is said
        by logind, as soon as it can be reached."""
        stored = restore_shutdown(self._directory)
        _measure(stored.start_time, stored.end_time)
        if stored.boot_id != self._boot_id:
            return
        if stored.drained:
            self._feed(NodeShutdownBegan(ShutdownCause.DRAIN))
        if stored.cause == ShutdownCause.HOST and self._watch is not None:
            self._feed(NodeShutdownBegan(ShutdownCause.HOST))

    async def watch(self) -> None:
        """Hold on to logind for good, where the configuration wants that."""
        if self._watch is not None:
            await self._watch.run()

    def changed(self, state: ShutdownChanged) -> None:
        """The sync loop is further with it."""
        self._state = state
        log.info("%s", _words(state))
        _measure(state.started_at, state.ended_at)
        stored = StoredShutdown(state.started_at, state.ended_at, self.cause, self._boot_id, state.drained)
        try:
            save_shutdown(self._directory, stored)
        except OSError as error:
            log.error("the state of the shutdown cannot be kept: %s", error)
        if state.ended_at:
            self._pods_have_ended()

    def end_after_pods(self) -> None:
        """End the agent (SIGTERM); when the host goes down, after its pods."""
        if self._state.cause is ShutdownCause.HOST and not self._state.ended_at:
            self._ends_with_it = True
        else:
            self._end()

    def noticed(self, available_s: float | None) -> None:
        """logind says that the host goes down, and how long it waits, or (None) that it stays up."""
        if available_s is None:
            self._feed(NodeShutdownCalledOff(ShutdownCause.HOST))
        else:
            self._feed(NodeShutdownBegan(ShutdownCause.HOST, available_s))

    def _pods_have_ended(self) -> None:
        if self._watch is not None and self._state.cause is ShutdownCause.HOST:
            self._watch.release()
        if self._ends_with_it:
            self._end()


def _measure(started_at: float, ended_at: float) -> None:
    METERS.counter(metrics.SHUTDOWN_START).set(started_at)
    METERS.counter(metrics.SHUTDOWN_END).set(ended_at)


def _words(state: ShutdownChanged) -> str:
    if state.cause is None:
        return "the node is wanted again: pods that have ended with it begin anew"
    why = "the host goes down" if state.cause is ShutdownCause.HOST else "the node is drained"
    return f"{why}: pods have ended" if state.ended_at else f"{why}: pods end in order of their priority"
