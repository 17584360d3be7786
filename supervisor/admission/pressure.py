"""Whether a pod may begin while the node has a condition of pressure (pkg/kubelet/eviction/eviction_manager.go, Admit).

Only pods that begin are asked: one that runs is not refused an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import Taint
from ipc.k8s.eviction.signals import NodePressure
from ipc.k8s.kubecontainer.pod_failure import EVICTED
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.k8s.scheduling.priority import is_critical
from ipc.k8s.scheduling.tolerations import tolerates_all

MEMORY_PRESSURE_TAINT: Final = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
"""k8s.io/api/core/v1, TaintNodeMemoryPressure."""
BEST_EFFORT: Final = "BestEffort"


def pressure_problem(pod: Pod, conditions: Sequence[NodePressure]) -> tuple[str, str] | None:
    """Reason and message of its rejection; None when it may begin."""
    if not conditions or is_critical(pod):
        return None
    if tuple(conditions) == (NodePressure.MEMORY,) and (
        compute_pod_qos(pod) != BEST_EFFORT or tolerates_all(pod.spec.tolerations, (MEMORY_PRESSURE_TAINT,))
    ):
        return None
    return EVICTED, f"The node had condition: [{' '.join(conditions)}]. "
