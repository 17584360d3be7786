"""Health of Podman as the node worker reports it: a line of the log, an event of the node, a part of `version`."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from ipc.host.clock import Clock
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.node_worker import RuntimeHealth

log = logging.getLogger(__name__)


class PodmanHealth:
    """Owns the newest report."""

    def __init__(self, clock: Clock, node_event: Callable[[EventReason, str], None]) -> None:
        self._clock = clock
        self._node_event = node_event
        self.newest = RuntimeHealth(healthy=False, message="not asked yet")
        """With the version that was known last, also while it does not answer."""
        self.silent_since = 0.0
        """Wall time at which Podman was found not to answer; 0.0 while it does, and before it was asked."""

    def take(self, health: RuntimeHealth) -> None:
        """Write and tell what is news of it."""
        if (health.healthy, health.version) != (self.newest.healthy, self.newest.version) or health.message:
            self._log(health)
        if health.network_problem != self.newest.network_problem:
            _log_network(health.network_problem)
        self.silent_since = 0.0 if health.healthy else self.silent_since or self._clock.now().wall
        if health.healthy is not self.newest.healthy:
            self._tell_node(health)
        self.newest = msgspec.structs.replace(health, version=health.version or self.newest.version)

    def _log(self, health: RuntimeHealth) -> None:
        """Our own Podman service takes a moment to answer for the first time: no reason to warn."""
        if health.healthy:
            log.info("Podman answers (API %s)", health.version)
        else:
            level = logging.WARNING if self.newest.version else logging.INFO
            log.log(level, "Podman does not answer: %s", health.message)

    def _tell_node(self, health: RuntimeHealth) -> None:
        """Record a change of Podman's health: an event of the node, once, but not for the first answer of all."""
        if not self.newest.version:
            return
        if health.healthy:
            self._node_event(event_reasons.CONTAINER_RUNTIME_UP, "Podman answers again")
        else:
            self._node_event(event_reasons.CONTAINER_RUNTIME_DOWN, f"Podman does not answer: {health.message}")


def _log_network(problem: str) -> None:
    if problem:
        log.error("pods in the host's network alone can start: %s", problem)
    else:
        log.info("pods can have a network of their own again")
