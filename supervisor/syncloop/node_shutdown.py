"""The node goes down: its pods end in groups of growing priority, and none is admitted (pkg/kubelet/nodeshutdown).

The cause is the host's own shutdown, or somebody who drains the node. Differs on purpose: after a shutdown that was
called off, or a drain that is over, the pods come back, which upstream leaves to the controllers of a cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ipc.host.clock import Instant
from ipc.kubecontainer.pod_failure import PodFailure
from ipc.podresources.priority import pod_priority
from supervisor.admission.predicates import Rejected
from supervisor.managers.node_shutdown import (
    NODE_SHUTDOWN_MESSAGE,
    NODE_SHUTDOWN_REASON,
    NOT_ADMITTED_MESSAGE,
    NOT_ADMITTED_REASON,
    ShutdownGroup,
    drain_classes,
    fitted,
    grace_in_group,
    group_by_priority,
    shutdown_classes,
)
from supervisor.podworkers.pod_worker_state import PodWorkerState
from supervisor.protocol.commands import ShutdownChanged
from supervisor.protocol.events import NodeShutdownBegan, ShutdownCause
from supervisor.syncloop.parts import LoopParts
from supervisor.syncloop.pod_kills import PodKill

_FAILURE = PodFailure(reason=NODE_SHUTDOWN_REASON, message=NODE_SHUTDOWN_MESSAGE, disruption=NODE_SHUTDOWN_MESSAGE)
NOT_ADMITTED = Rejected(NOT_ADMITTED_REASON, NOT_ADMITTED_MESSAGE)


class NodeShutdown:
    """Owns the groups that wait, and those of the present group that are still there."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._state = ShutdownChanged()
        self._groups: deque[ShutdownGroup] = deque()
        self._left: set[str] = set()
        self._until = 0.0
        """Monotonic time at which the next group begins, whatever is left of this one."""

    @property
    def is_under_way(self) -> bool:
        """The node goes down, or is down: no pod is admitted."""
        return self._state.cause is not None

    def on_begun(self, begun: NodeShutdownBegan, now: Instant) -> None:
        """A host that goes down makes a drain urgent; the other way round nothing is new."""
        if self.is_under_way and not (begun.cause is ShutdownCause.HOST and self._state.cause is ShutdownCause.DRAIN):
            return
        settings = self._parts.settings
        classes = shutdown_classes(settings) if begun.cause is ShutdownCause.HOST else drain_classes(settings)
        priorities = {s.uid: pod_priority(s.pod) for s in self._parts.pod_table if s.pod and s.lifecycle.active}
        self._groups = deque(group_by_priority(fitted(classes, begun.available_s), priorities))
        self._left, self._until = set(), 0.0
        self._change(ShutdownChanged(begun.cause, started_at=now.wall))
        self.advance(now)

    def call_off(self) -> bool:
        """Admit pods again; False when the node did not go down."""
        if not self.is_under_way:
            return False
        self._groups.clear()
        self._left.clear()
        self._change(ShutdownChanged())
        return True

    def is_cause(self, state: PodWorkerState) -> bool:
        """Whether the pod has ended, or was not admitted, because the node went down."""
        reason = self._parts.statuses.failure_reason(state.uid)
        return reason in (NODE_SHUTDOWN_REASON, NOT_ADMITTED_REASON)

    def advance(self, now: Instant) -> None:
        """Begin with the next group when nothing is left of this one, or when its time is over."""
        if not self.is_under_way or self._state.ended_at:
            return
        while self._groups and (not self._left or self._until <= now.mono):
            self._end_group(self._groups.popleft(), now)
        if not self._groups and (not self._left or self._until <= now.mono):
            self._change(ShutdownChanged(self._state.cause, self._state.started_at, now.wall))

    def _end_group(self, group: ShutdownGroup, now: Instant) -> None:
        self._until = now.mono + group.grace_period_s
        self._left = set(group.uids)
        for uid in group.uids:
            state = self._parts.pod_table.get(uid)
            if state is not None and state.pod is not None and state.lifecycle.active:
                kill = PodKill(failure=_FAILURE, grace_period_s=grace_in_group(state.pod, group), evict=False)
                self._parts.kills.kill(state, kill, now, self._ended(uid))
            else:
                self._left.discard(uid)

    def _ended(self, uid: str) -> Callable[[bool, Instant], None]:
        def ended(_in_time: bool, now: Instant) -> None:
            self._left.discard(uid)

        return ended

    def _change(self, changed: ShutdownChanged) -> None:
        self._state = changed
        self._parts.out.add(changed)
