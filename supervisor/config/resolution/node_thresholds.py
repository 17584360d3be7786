"""Thresholds of eviction on a node, and the memory of all its pods, as the settings have them. Pure."""

from __future__ import annotations

from ipc.k8s.eviction.thresholds import Threshold, with_allocatable
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import MEMORY
from ipc.k8s.podresources.pod_requests import amount as amount_of
from supervisor.config.settings import Settings


def node_thresholds(settings: Settings, node: NodeResources) -> tuple[Threshold, ...]:
    """Thresholds of eviction on that node: where pods may have less memory together than there is, or one cgroup holds
    them to a limit, that of their memory, too."""
    is_limited = has_limited_pods(node) or bool(pods_memory(settings, node))
    return with_allocatable(settings.thresholds) if is_limited else settings.thresholds


def has_limited_pods(node: NodeResources) -> bool:
    """Whether one cgroup holds all pods to a limit of memory."""
    return node.pod_cgroups is not None and node.pod_cgroups.enforced and "memory" in node.controllers


def pods_memory(settings: Settings, node: NodeResources) -> int:
    """Memory that all pods may have together where no cgroup holds them to it, in bytes. 0: nothing is reserved for
    others, and the host runs short before; or a cgroup holds them, or nothing is to."""
    reserved = any(amount_of(kept, MEMORY) for kept in (settings.kube_reserved, settings.system_reserved))
    if has_limited_pods(node) or "pods" not in settings.enforce_node_allocatable or not reserved:
        return 0
    return amount_of(node.pods_limit, MEMORY)
