"""Swap of containers (memorySwap.swapBehavior). Pure.

Mirrors GetContainerSwapBehavior and configureContainerSwapResources
(pkg/kubelet/kuberuntime/kuberuntime_container_linux.go).
"""

from __future__ import annotations

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import MEMORY, amount
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.k8s.scheduling.priority import is_critical


def may_swap(pod: Pod, container: Container, node: NodeResources) -> bool:
    """Whether swap is given out and the container gets some of it (LimitedSwap): burstable pods do, but for containers
    whose request of memory is their limit."""
    is_given_out = node.swap.is_limited_by_cgroup and node.swap.total_bytes > 0
    if not is_given_out or is_critical(pod) or compute_pod_qos(pod) != "Burstable":
        return False
    return amount(container.resources.requests, MEMORY) != amount(container.resources.limits, MEMORY)


def swap_limit(pod: Pod, container: Container, node: NodeResources) -> int:
    """Bytes of swap that the container may have: its share of the node's memory is its share of the swap."""
    capacity = amount(node.capacity, MEMORY)
    if not capacity or not may_swap(pod, container, node):
        return 0
    return int(amount(container.resources.requests, MEMORY) / capacity * node.swap.total_bytes)
