"""Plans of the slices above those of pods, and of whose slices are wanted: made when pods change and once a minute, for
the node worker to carry out.

Mirrors qosContainerManagerImpl.UpdateCgroups (pkg/kubelet/cm/qos_container_manager_linux.go), which upstream calls at
each pod that comes or goes and once a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ipc.api.v1.pod import Pod
from ipc.host.clock import Instant
from ipc.messages.node_worker import UpdatePodCgroups
from ipc.messages.pod_worker import WorkType
from ipc.podresources.pod_cgroups import burstable_milli_cpu, shared_slices
from supervisor.loop.command_buffer import CommandBuffer
from supervisor.loop.node_view import ThisNode
from supervisor.pods.cache import PodCache
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.processes.worker_pool import NODE_SLOT

PERIOD_S: Final = 60.0
"""periodicQOSCgroupUpdateInterval."""


class PodCgroupPlans:
    """Owner of the newest plan."""

    def __init__(
        self, node: ThisNode, pod_table: PodTable, cache: PodCache, out: CommandBuffer, is_all_known: Callable[[], bool]
    ) -> None:
        self._node = node
        self._pod_table = pod_table
        self._cache = cache
        self._out = out
        self._is_all_known = is_all_known
        self._pods: dict[str, Pod] = {}
        """Active pods of the last plan."""
        self._asked: dict[str, int] = {}
        """By uid: thousandths of a CPU for which it asks, if it is burstable."""
        self._planned_at = -math.inf
        """Monotonic seconds."""

    def node_up(self) -> None:
        """A new node worker knows no plan."""
        self._planned_at = -math.inf

    def tick(self, now: Instant) -> None:
        """Send a plan if one is due. Only while it is known what is wanted and what runs."""
        if not self._is_all_known():
            return
        concerned, pod_cgroups = self._pod_table.take_concerned(), self._node.view.resources.pod_cgroups
        if pod_cgroups is None or not self._out.is_up(NODE_SLOT):
            return
        if now.mono - self._planned_at < PERIOD_S and not any(map(self._is_news, concerned)):
            return
        active = {state.uid: pod for state in self._pod_table if (pod := _active(state)) is not None}
        self._asked = {
            uid: self._asked[uid] if self._pods.get(uid) is pod else burstable_milli_cpu(pod)
            for uid, pod in active.items()
        }
        self._pods, self._planned_at = active, now.mono
        self._out.to_node(
            UpdatePodCgroups(
                slices=shared_slices(pod_cgroups, self._node.view.resources.pods_limit, sum(self._asked.values())),
                uids=tuple({*self._pod_table.uids(), *self._cache.unseen}),
                planned_at=now.mono,
            )
        )

    def _is_news(self, uid: str) -> bool:
        """Whether the last plan was made of another pod than that is now: specs are replaced, never changed."""
        return self._pods.get(uid) is not _active(self._pod_table.get(uid))


def _active(state: PodRecord | None) -> Pod | None:
    """The pod, while it runs or may run."""
    if state is None or not state.lifecycle.active or state.lifecycle.phase is not WorkType.SYNC:
        return None
    return state.pod
