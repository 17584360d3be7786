"""The node goes down: its pods end in groups of growing priority, and none is admitted (pkg/kubelet/nodeshutdown).

The cause is the host's own shutdown, or somebody who drains the node. Differs on purpose: after a shutdown that was
called off, or a drain that is over, the pods come back, which upstream leaves to the controllers of a cluster.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.scheduling.priority import pod_priority
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
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_kills import PodKill, PodKills
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import KnownPods
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.commands import ShutdownChanged
from supervisor.protocol.events import NodeShutdownBegan, ShutdownCause
from supervisor.record.status_manager import StatusManager

_FAILURE = PodFailure(reason=NODE_SHUTDOWN_REASON, message=NODE_SHUTDOWN_MESSAGE, disruption=NODE_SHUTDOWN_MESSAGE)
GATHERING_S: Final = 10.0
"""Longest wait for what sources state and Podman runs, from the agent's start on."""
NOT_ADMITTED = Rejected(NOT_ADMITTED_REASON, NOT_ADMITTED_MESSAGE)


class _PresentGroup(msgspec.Struct):
    """Pods that end now."""

    until: float = 0.0
    """Monotonic time at which the next group begins, whatever is left of this one."""
    left: set[str] = set()

    def is_over(self, now: Instant) -> bool:
        return not self.left or self.until <= now.mono


class NodeShutdown(msgspec.Struct, eq=False):
    """Owns the groups that wait, and those of the present group that are still there."""

    _node: ThisNode
    _known: KnownPods
    _pod_table: PodTable
    _cache: PodCache
    _statuses: StatusManager
    _kills: PodKills
    _reporter: PodReporter
    _out: CommandBuffer
    _state: ShutdownChanged = msgspec.field(default_factory=ShutdownChanged)
    _groups: deque[ShutdownGroup] = msgspec.field(default_factory=deque)
    _present: _PresentGroup = msgspec.field(default_factory=_PresentGroup)
    _started_at: float | None = None
    """When the first event was handled, monotonic seconds."""
    _are_sources_ready: bool = False
    _available_s: float = math.inf
    _gathers_until: float | None = None
    """Monotonic time at which groups are made, whatever is known by then; None: they are made."""

    @property
    def is_under_way(self) -> bool:
        """The node goes down, or is down: no pod is admitted."""
        return self._state.cause is not None

    @property
    def is_gathering(self) -> bool:
        """Whether it is not known yet what runs, as an agent before this one was killed in the midst of it. Meanwhile
        nothing starts and nothing ends."""
        return self._gathers_until is not None

    def holds(self, state: PodRecord) -> bool:
        """Whether the pod is not synced until its turn to end has come."""
        return self.is_gathering or state.parts.is_newcomer

    def newcomers(self) -> list[PodRecord]:
        """Pods that were stated while it gathers, or did, by UID."""
        return sorted((state for state in self._pod_table if state.parts.is_newcomer), key=lambda state: state.uid)

    def comes(self, uid: str) -> None:
        """A pod is stated meanwhile. It has a place in its group if it runs, and is not admitted else."""
        self._known.of(uid).is_newcomer = True

    def sources_ready(self, now: Instant) -> None:
        """Every configured source was read completely once."""
        self._are_sources_ready = True

    def on_begun(self, begun: NodeShutdownBegan, now: Instant) -> None:
        """A host that goes down makes a drain urgent; the other way round nothing ends otherwise."""
        drained = self._state.drained or begun.cause is ShutdownCause.DRAIN
        if begun.cause is ShutdownCause.HOST:
            self._available_s = begun.available_s
        if self._state.cause in (ShutdownCause.HOST, begun.cause):
            self._change(msgspec.structs.replace(self._state, drained=drained))
            return
        self._groups.clear()
        self._present = _PresentGroup()
        self._gathers_until = self._start(now) + GATHERING_S
        self._change(ShutdownChanged(begun.cause, started_at=now.wall, drained=drained))
        self.advance(now)

    def call_off(self, cause: ShutdownCause) -> bool:
        """Forget that cause. True when pods are admitted again: there was no other one."""
        drained = self._state.drained and cause is not ShutdownCause.DRAIN
        left = ShutdownCause.DRAIN if drained else None
        if self._state.cause is ShutdownCause.HOST and cause is not ShutdownCause.HOST:
            left = ShutdownCause.HOST
        if left is not None or not self.is_under_way:
            self._change(msgspec.structs.replace(self._state, cause=left, drained=drained))
            return False
        self._groups.clear()
        self._present = _PresentGroup()
        for state in self.newcomers():
            state.parts.is_newcomer = False
        self._gathers_until = None
        self._pod_table.touch(self._pod_table.uids())
        self._change(ShutdownChanged())
        return True

    def is_cause(self, state: PodRecord) -> bool:
        """Whether the pod has ended, or was not admitted, because the node went down."""
        reason = self._statuses.failure_reason(state.uid)
        return reason in (NODE_SHUTDOWN_REASON, NOT_ADMITTED_REASON)

    def advance(self, now: Instant) -> None:
        """Begin with the next group when nothing is left of this one, or when its time is over."""
        self._start(now)
        if not self.is_under_way or self._state.ended_at:
            return
        if self._gathers_until is not None:
            is_known = self._are_sources_ready and self._cache.relisted_at > 0.0
            if not is_known and now.mono < self._gathers_until:
                return
            self._gather(now)
        while self._groups and self._present.is_over(now):
            self._end_group(self._groups.popleft(), now)
        if not self._groups and self._present.is_over(now):
            self._change(msgspec.structs.replace(self._state, ended_at=now.wall))

    def _start(self, now: Instant) -> float:
        if self._started_at is None:
            self._started_at = now.mono
        return self._started_at

    def _gather(self, now: Instant) -> None:
        """Make the groups of the pods that there are."""
        for state in self.newcomers():
            self._take_in(state, now)
        self._gathers_until = None
        settings, is_host = self._node.view.settings, self._state.cause is ShutdownCause.HOST
        classes = fitted(shutdown_classes(settings), self._available_s) if is_host else drain_classes(settings)
        priorities = {s.uid: pod_priority(s.pod) for s in self._pod_table if s.pod and s.lifecycle.active}
        self._groups = deque(group_by_priority(classes, priorities))
        self._pod_table.touch(self._pod_table.uids())

    def _take_in(self, state: PodRecord, now: Instant) -> None:
        """Have a pod end that has ended before, and reject one that was never there."""
        view = self._cache.get(state.uid)
        if not state.lifecycle.active or self._statuses.is_rejected(state.uid):
            return
        is_unknown = view.is_empty() and not view.observed_at
        if is_unknown or view.is_running():
            return
        if view.is_empty():
            self._kills.reject(state, NOT_ADMITTED, now)
        else:
            self._kills.end(state, _FAILURE, None, evict=False)
        self._reporter.report(state, now)

    def _end_group(self, group: ShutdownGroup, now: Instant) -> None:
        self._present = _PresentGroup(now.mono + group.grace_period_s, set(group.uids))
        for uid in group.uids:
            state = self._pod_table.get(uid)
            if state is not None and state.pod is not None and state.lifecycle.active:
                kill = PodKill(failure=_FAILURE, grace_period_s=grace_in_group(state.pod, group), evict=False)
                self._kills.kill(state, kill, now, self._ended(uid))
            else:
                self._present.left.discard(uid)

    def _ended(self, uid: str) -> Callable[[bool, Instant], None]:
        def ended(_in_time: bool, now: Instant) -> None:
            self._present.left.discard(uid)

        return ended

    def _change(self, changed: ShutdownChanged) -> None:
        if changed != self._state:
            self._state = changed
            self._out.add(changed)
