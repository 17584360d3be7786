"""OOM score of a container's processes. Pure.

Mirrors GetContainerOOMScoreAdjust (pkg/kubelet/qos/policy.go). A user can only make processes more likely to be killed
than its own: `within_reach` is the score that this host allows.
"""

from __future__ import annotations

from typing import Final

from ipc.k8s.api.default_resources import aggregate_requests
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.k8s.podresources.pod_requests import MEMORY, amount, memory_request
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.k8s.scheduling.priority import SYSTEM_NODE_CRITICAL

GUARANTEED: Final = -997
BEST_EFFORT: Final = 1000


def oom_score_adj(pod: Pod, container: Container, memory_capacity: int) -> int:
    """Score of a container as upstream computes it, on a node of so many bytes."""
    qos_class = compute_pod_qos(pod)
    if pod.spec.priority_class_name == SYSTEM_NODE_CRITICAL or qos_class == "Guaranteed":
        return GUARANTEED
    if qos_class == "BestEffort":
        return BEST_EFFORT
    spare = _spare_per_container(pod)
    score = _share_left(memory_request(container) + spare, memory_capacity)
    if is_restartable_init(container) and container in pod.spec.init_containers:
        smallest = min(memory_request(regular) for regular in pod.spec.containers)
        score = min(score, _share_left(smallest + spare, memory_capacity))
    return min(max(score, BEST_EFFORT + GUARANTEED), BEST_EFFORT - 1)


def within_reach(score: int, least: int) -> int:
    """``least`` is this user's own: what is lower takes a capability that it does not have."""
    return max(score, least)


def _share_left(request: int, capacity: int) -> int:
    """Truncated as Go divides."""
    return BEST_EFFORT - int(BEST_EFFORT * request / capacity)


def _spare_per_container(pod: Pod) -> int:
    """Bytes of the whole pod's request that its containers do not ask for (remainingPodMemReqPerContainer)."""
    whole = amount(pod.spec.resources.requests, MEMORY) if pod.spec.resources is not None else 0
    if not whole:
        return 0
    found = aggregate_requests(pod.spec).get(MEMORY)
    asked = amount({MEMORY: str(found)}, MEMORY) if found is not None else 0
    return (whole - asked) // (len(pod.spec.containers) + len(pod.spec.init_containers))
