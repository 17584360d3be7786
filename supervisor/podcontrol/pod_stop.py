"""The stop of all pods with the agent, in groups of growing priority, whatever the sources say."""

from __future__ import annotations

import math
from collections import deque

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.scheduling.priority import pod_priority
from ipc.link.messages.node_worker import Relist
from supervisor.managers.node_shutdown import ShutdownGroup, drain_classes, group_by_priority
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.removals import PodRemovals
from supervisor.pods.cache import PodCache
from supervisor.pods.table import PodTable
from supervisor.protocol.commands import PodsStopped
from supervisor.protocol.events import StopPods


class PodStop(msgspec.Struct, eq=False):
    """Owns whether everything is to stop, and the groups that wait for that."""

    _node: ThisNode
    _pod_table: PodTable
    _cache: PodCache
    _removals: PodRemovals
    _out: CommandBuffer
    _asked_at: float | None = None
    """Monotonic time of StopPods; infinite once it was answered."""
    _waiting: deque[ShutdownGroup] = msgspec.field(default_factory=deque)
    """Pods that are stopped when nothing is left of ``_present``."""
    _present: tuple[str, ...] = ()
    """UIDs."""

    @property
    def is_under_way(self) -> bool:
        """All pods are being stopped, whatever the sources say."""
        return self._asked_at is not None

    def is_all_known(self) -> bool:
        """Whether it is known what is wanted and what runs, and the agent does not stop."""
        return self._removals.are_sources_ready and self._cache.relisted_at > 0.0 and not self.is_under_way

    def on_stop_pods(self, _: StopPods, now: Instant) -> None:
        """Terminate and remove all pods, critical ones last, whatever the sources say later."""
        self._asked_at = now.mono
        for state in self._pod_table:
            state.drop_successor()
        priorities = {state.uid: pod_priority(state.pod) if state.pod else 0 for state in self._pod_table}
        self._waiting.extend(group_by_priority(drain_classes(self._node.view.settings), priorities))
        self.stop_next_group(now)
        self._out.to_node(Relist())

    def stop_next_group(self, now: Instant) -> None:
        """Stop the next group of pods, when nothing is left of the one before."""
        while self._waiting and not any(uid in self._pod_table for uid in self._present):
            self._present = self._waiting.popleft().uids
            for state in [state for uid in self._present if (state := self._pod_table.get(uid)) is not None]:
                self._removals.terminate(state, None, now)

    def answer(self, now: Instant) -> None:
        """Say once that all pods are gone, by a relist that began after the question and has found nothing of ours."""
        asked_at, cache = self._asked_at, self._cache
        if asked_at is None or self._pod_table or cache.relisted_at <= asked_at:
            return
        if cache.unseen or cache.orphans():
            return
        self._asked_at = math.inf
        self._out.add(PodsStopped())
