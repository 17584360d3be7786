"""Room that pods of the node take from each other (pkg/kubelet/kubelet_pods.go, filterOutInactivePods)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from ipc.k8s.api.v1.pod import Pod
from supervisor.admission.node_usage import NodeUsage
from supervisor.pods.table import PodTable
from supervisor.record.status_manager import StatusManager


class ActivePods(msgspec.Struct, frozen=True, eq=False):
    """Knows which pods count."""

    _pod_table: PodTable
    _statuses: StatusManager
    _usage: NodeUsage

    def beside(self, pod: Pod, gone: AbstractSet[str] = frozenset()) -> NodeUsage:
        """Usage of the other pods that count against maxPods, host ports and resources; without ``gone``, by UID."""
        return self._usage.without({pod.metadata.uid} | self.inactive() | gone)

    def inactive(self) -> set[str]:
        """UIDs of pods that do not count."""
        is_rejected = self._statuses.is_rejected
        return {state.uid for state in self._pod_table if not state.lifecycle.active or is_rejected(state.uid)}
