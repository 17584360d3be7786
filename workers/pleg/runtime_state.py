"""What the master is told of Podman as a whole: whether it answers, and that it is stuck. No I/O.

Mirrors the part of the kubelet's runtimeState (pkg/kubelet/runtime.go) that the container runtime feeds.
"""

from __future__ import annotations

from typing import Final

from ipc.messages.node_worker import RuntimeHealth, ServiceSilent
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

RELIST_SLACK_S: Final = 30.0
"""How much longer than runtimeRequestTimeout no relist may have succeeded before Podman counts as stuck, in seconds:
whoever works on something large has had the time for it."""


class RuntimeState:
    """What was told last. Each method says what is to be told now: nothing that the master knows already."""

    def __init__(self, request_timeout_s: float, now: float) -> None:
        """``now`` is in monotonic seconds, here and below."""
        self._stuck_s = request_timeout_s + RELIST_SLACK_S
        self._told = RuntimeHealth(healthy=False)
        self._relisted_at = now
        """When a relist has last succeeded, or it was told that none does."""

    @property
    def version(self) -> str:
        """Podman's, as it was told last; empty while it does not answer."""
        return self._told.version

    def relisted(self, now: float, version: str) -> tuple[RuntimeHealth, ...]:
        """A relist has succeeded."""
        self._relisted_at = now
        return self.answered(version)

    def answered(self, version: str) -> tuple[RuntimeHealth, ...]:
        """Podman lives."""
        return self._changed(RuntimeHealth(healthy=True, version=version))

    def failed(self, now: float, error: RuntimeCallError) -> tuple[RuntimeHealth | ServiceSilent, ...]:
        """It did not answer. When it takes requests, answers pings too, and lists nothing for longer than any call may
        take, then a lock of its own never comes free."""
        health = self._changed(RuntimeHealth(healthy=False, message=error.message))
        silence_s = now - self._relisted_at
        if error.kind is not ErrorKind.TIMEOUT or silence_s < self._stuck_s:
            return health
        self._relisted_at = now
        return (*health, ServiceSilent(message=f"no relist has succeeded for {silence_s:.0f} s: {error.message}"))

    def _changed(self, health: RuntimeHealth) -> tuple[RuntimeHealth, ...]:
        if health == self._told:
            return ()
        self._told = health
        return (health,)
