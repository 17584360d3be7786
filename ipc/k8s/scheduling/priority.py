"""Priority of a pod, and whether it is critical. Pure.

Source: pkg/kubelet/types/pod_update.go (IsCriticalPod, Preemptable), pkg/apis/scheduling/types.go. Different here:
upstream calls every static pod critical; here every pod is one, so a pod is critical by its priority alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.v1.pod import Pod

SYSTEM_CRITICAL_PRIORITY: Final = 2 * 10**9
"""The least priority of a critical pod."""
SYSTEM_CLUSTER_CRITICAL: Final = "system-cluster-critical"
SYSTEM_NODE_CRITICAL: Final = "system-node-critical"
SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    SYSTEM_CLUSTER_CRITICAL: SYSTEM_CRITICAL_PRIORITY,
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL_PRIORITY + 1000,
}
"""Priority by name of the classes that are there without a document."""
NO_CLASS_PRIORITY: Final = 0
"""Priority of a pod that has none (DefaultPriorityWhenNoDefaultClassExists)."""


def pod_priority(pod: Pod) -> int:
    """The priority of a pod as the sync loop has it: `supervisor.sources.objects.priority` has put the number of its
    class in (PodPriority, component-helpers scheduling/corev1/helpers.go). Pods of a checkpoint of an older agent have
    the name of the class alone."""
    if pod.spec.priority is not None:
        return pod.spec.priority
    return SYSTEM_CLASSES.get(pod.spec.priority_class_name, NO_CLASS_PRIORITY)


def is_critical(pod: Pod) -> bool:
    """A critical pod is never evicted, stops last, and others give way to it (IsCriticalPodBasedOnPriority)."""
    return pod_priority(pod) >= SYSTEM_CRITICAL_PRIORITY


def can_preempt(preemptor: Pod, other: Pod) -> bool:
    """Whether the other pod may be killed so that this one has room (Preemptable)."""
    if not is_critical(preemptor):
        return False
    return not is_critical(other) or pod_priority(preemptor) > pod_priority(other)
