"""Health of Podman as a whole, as reported to the master: whether it answers, and whether it is stuck. No I/O.

Mirrors the part of the kubelet's runtimeState (pkg/kubelet/runtime.go) that the container runtime feeds.
"""

from __future__ import annotations

from typing import Final

from ipc.link.messages.node_worker import RuntimeHealth, ServiceSilent
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

RELIST_SLACK_S: Final = 30.0
"""How much longer than runtimeRequestTimeout no relist may have succeeded before Podman counts as stuck, in seconds:
a call on something large has had the time for it."""


class RuntimeState:
    """The health that was reported last. Each method returns the reports to send now: none that repeats the last."""

    def __init__(self, request_timeout_s: float, now: float) -> None:
        """``now`` is in monotonic seconds, here and below."""
        self._stuck_s = request_timeout_s + RELIST_SLACK_S
        self._reported = RuntimeHealth(healthy=False)
        self._relisted_at = now
        """Time at which a relist has last succeeded, or its failure was reported."""

    @property
    def version(self) -> str:
        """Version of Podman's API as reported last; empty while Podman does not answer."""
        return self._reported.version

    def relisted(self, now: float, version: str, network_problem: str = "") -> tuple[RuntimeHealth, ...]:
        """A relist has succeeded."""
        self._relisted_at = now
        return self.answered(version, network_problem)

    def answered(self, version: str, network_problem: str = "") -> tuple[RuntimeHealth, ...]:
        """Podman has answered a ping. ``network_problem``: why it can give no pod a network."""
        return self._changed(RuntimeHealth(healthy=True, version=version, network_problem=network_problem))

    def failed(self, now: float, error: RuntimeCallError) -> tuple[RuntimeHealth | ServiceSilent, ...]:
        """Podman did not answer. It is stuck when it takes requests, answers pings too, and no relist succeeds for
        longer than any call may take: then a lock of its own never comes free."""
        known = self._reported.network_problem
        health = self._changed(RuntimeHealth(healthy=False, message=error.message, network_problem=known))
        silence_s = now - self._relisted_at
        if error.kind is not ErrorKind.TIMEOUT or silence_s < self._stuck_s:
            return health
        self._relisted_at = now
        return (*health, ServiceSilent(message=f"no relist has succeeded for {silence_s:.0f} s: {error.message}"))

    def _changed(self, health: RuntimeHealth) -> tuple[RuntimeHealth, ...]:
        if health == self._reported:
            return ()
        self._reported = health
        return (health,)
