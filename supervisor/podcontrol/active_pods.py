"""Room that pods of the node take from each other (pkg/kubelet/kubelet_pods.go, filterOutInactivePods)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from ipc.k8s.api.v1.pod import Pod
from supervisor.admission.node_usage import NodeUsage
from supervisor.pods.table import PodTable


class ActivePods(msgspec.Struct, frozen=True, eq=False):
    """Knows which pods count."""

    _pod_table: PodTable
    _usage: NodeUsage

    def beside(self, pod: Pod, gone: AbstractSet[str] = frozenset()) -> NodeUsage:
        """Usage of the other pods that count against maxPods, host ports and resources; without ``gone``, by UID."""
        return self._usage.without({pod.metadata.uid} | self.inactive() | gone)

    def inactive(self) -> set[str]:
        """UIDs of pods that do not count."""
        return {
            state.uid
            for state in self._pod_table
            if not state.lifecycle.active or state.parts.status.rejection is not None
        }
