"""Plans of the slices above those of pods, and of whose slices are wanted: made when pods change and once a minute, for
the node worker to carry out.

Mirrors qosContainerManagerImpl.UpdateCgroups (pkg/kubelet/cm/qos_container_manager_linux.go), which upstream calls at
each pod that comes or goes and once a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.pod_cgroups import burstable_milli_cpu, shared_slices
from ipc.link.messages.node_worker import UpdatePodCgroups
from ipc.link.messages.pod_worker import WorkType
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import KnownPods, PlannedSlice, PodParts
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.processes.worker_pool import NODE_SLOT

PERIOD_S: Final = 60.0
"""periodicQOSCgroupUpdateInterval."""


class PodCgroupPlans:
    """Owner of the newest plan."""

    def __init__(
        self,
        node: ThisNode,
        known: KnownPods,
        pod_table: PodTable,
        cache: PodCache,
        out: CommandBuffer,
        is_all_known: Callable[[], bool],
    ) -> None:
        self._node = node
        self._pod_table = pod_table
        self._cache = cache
        self._out = out
        self._is_all_known = is_all_known
        self._planned_at = -math.inf
        """Monotonic seconds."""
        self._has_lost = False
        """A pod of the last plan is gone."""
        known.on_forget(self._forgotten)

    def _forgotten(self, _: str, parts: PodParts) -> None:
        self._has_lost = self._has_lost or parts.planned_slice is not None

    def node_up(self) -> None:
        """A new node worker knows no plan."""
        self._planned_at = -math.inf

    def plan_due(self, now: Instant) -> None:
        """Send a plan if one is due. Only while it is known what is wanted and what runs."""
        if not self._is_all_known():
            return
        concerned, pod_cgroups = self._pod_table.take_concerned(), self._node.view.resources.pod_cgroups
        if pod_cgroups is None or not self._out.is_up(NODE_SLOT):
            return
        is_periodic = now.mono - self._planned_at >= PERIOD_S
        if not (is_periodic or self._has_lost or any(map(self._is_news, concerned))):
            return
        self._has_lost = False
        self._planned_at, planned = now.mono, [_plan(state) for state in self._pod_table]
        asked = sum(each.milli_cpu for each in planned if each is not None)
        self._out.to_node(
            UpdatePodCgroups(
                slices=shared_slices(pod_cgroups, self._node.view.resources.pods_limit, asked),
                uids=tuple(sorted({*self._pod_table.uids(), *self._cache.unseen})),
                planned_at=now.mono,
            )
        )

    def _is_news(self, uid: str) -> bool:
        """Whether the last plan was made of another pod than that is now: specs are replaced, never changed."""
        state = self._pod_table.get(uid)
        return state is not None and not _is_planned(state, _active(state))


def _active(state: PodRecord) -> Pod | None:
    """The pod, while it runs or may run."""
    return state.pod if state.lifecycle.active and state.lifecycle.phase is WorkType.SYNC else None


def _is_planned(state: PodRecord, active: Pod | None) -> bool:
    planned = state.parts.planned_slice
    return active is (planned.pod if planned is not None else None)


def _plan(state: PodRecord) -> PlannedSlice | None:
    """The pod in the plan that is made now, computed anew for another pod than that of the last plan."""
    active = _active(state)
    if not _is_planned(state, active):
        state.parts.planned_slice = PlannedSlice(active, burstable_milli_cpu(active)) if active is not None else None
    return state.parts.planned_slice
