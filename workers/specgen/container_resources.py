"""Resources of a container and of its pod, as fields of libpod's SpecGenerators. Pure.

Mirrors generateLinuxContainerResources (pkg/kubelet/kuberuntime/kuberuntime_container_linux.go) and the conversions of
pkg/kubelet/cm/helpers_linux.go. Only what a delegated controller can enforce is asked for: a limit that is not enforced
must not show (`supervisor.admission.predicates` reports it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.allocation import effective_limits
from ipc.k8s.podresources.cgroup_config import (
    NO_LIMIT,
    CgroupConfig,
    milli_cpu_to_quota,
    milli_cpu_to_shares,
    pod_cgroup_config,
)
from ipc.k8s.podresources.node_resources import CfsQuota, NodeResources
from ipc.k8s.podresources.pod_cgroups import pod_slice
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount
from ipc.k8s.podresources.swap import swap_limit
from workers.specgen.oom_score import oom_score_adj, within_reach

V = TypeVar("V", bound="int | None")
SWAP_MAX: Final = "memory.swap.max"
KILLED_AS_A_WHOLE: Final = {"memory.oom.group": "1"}
"""Podman takes it among the limits; of the `unified` that its SpecGenerator has, too, it makes nothing."""


def container_resources(pod: Pod, container: Container, node: NodeResources) -> JsonObject:
    """Fields of a SpecGenerator."""
    limits = effective_limits(pod.spec.resources, container.resources)
    swap_bytes = swap_limit(pod, container, node)
    memory = _memory(limits, swap_bytes)
    asked: dict[str, Mapping[str, int]] = {
        "cpu": _cpu(container.resources.requests, limits, node.cfs),
        "memory": memory,
        "pids": {"limit": node.pod_pids_limit} if node.pod_pids_limit else {},
    }
    given: dict[str, Mapping[str, int | str]] = {**_delegated(asked, node)}
    if unified := _unified(node, swap_bytes, is_limited="memory" in given):
        given["unified"] = unified
    return {**({"resource_limits": given} if given else {}), **_oom_score(pod, container, node)}


def sandbox_resources(pod: Pod, node: NodeResources) -> JsonObject:
    """Fields of a PodSpecGenerator about the cgroup of the whole pod, which there is where systemd manages them. Podman
    makes one of its own and gives it `pod_resources`, unless the pod has a slice. In that each container is put by
    itself: a pod's cgroup within slices within slices is where Podman 5 does not look for it."""
    if node.pod_cgroups is not None:
        return {"cgroup_parent": pod_slice(node.pod_cgroups, pod), "share_parent": False}
    return pod_resources(pod, node)


def container_parent(pod: Pod, node: NodeResources) -> dict[str, str]:
    """Fields of a SpecGenerator about the cgroup in which the container's own is."""
    return {"cgroup_parent": pod_slice(node.pod_cgroups, pod)} if node.pod_cgroups is not None else {}


def pod_resources(pod: Pod, node: NodeResources) -> JsonObject:
    """Resources of the cgroup of a whole pod, as a PodSpecGenerator has them (`pod_cgroup_config`). The weights of
    containers count within it."""
    given = _pod_limits(pod, node)
    return {"resource_limits": given} if given else {}


def _pod_limits(pod: Pod, node: NodeResources) -> dict[str, Mapping[str, int | None]]:
    config = pod_cgroup_config(pod, node.cfs)
    is_limited = config.cpu_quota not in (None, NO_LIMIT)
    quota = {"quota": config.cpu_quota, "period": config.cpu_period} if is_limited else {}
    asked: dict[str, Mapping[str, int | None]] = {
        "cpu": {"shares": config.cpu_shares, **quota},
        "memory": {"limit": config.memory} if config.memory else {},
    }
    return _delegated(asked, node)


def _delegated(asked: Mapping[str, Mapping[str, V]], node: NodeResources) -> dict[str, Mapping[str, V]]:
    """Values of those controllers that are there for this user."""
    return {name: values for name, values in asked.items() if values and name in node.controllers}


def pod_cgroup_values(pod: Pod, node: NodeResources) -> CgroupConfig:
    """Resources of the cgroup of a whole pod, as values of the files of one that there is."""
    given = _pod_limits(pod, node)
    cpu, memory = given.get("cpu", {}), given.get("memory", {})
    return CgroupConfig(
        memory=memory.get("limit"),
        cpu_shares=cpu.get("shares"),
        cpu_quota=cpu.get("quota"),
        cpu_period=cpu.get("period"),
        pids_limit=node.pod_pids_limit or None if "pids" in node.controllers else None,
    )


def _cpu(requests: ResourceList, limits: ResourceList, cfs: CfsQuota) -> Mapping[str, int]:
    asked, limit = amount(requests, CPU), amount(limits, CPU)
    return {"shares": milli_cpu_to_shares(asked if CPU in requests else limit), **_quota(limits, cfs)}


def _quota(limits: ResourceList, cfs: CfsQuota) -> Mapping[str, int]:
    limit = amount(limits, CPU) if cfs.enforced else 0
    return {"quota": milli_cpu_to_quota(limit, cfs.period_us), "period": cfs.period_us} if limit else {}


def _memory(limits: ResourceList, swap_bytes: int) -> Mapping[str, int]:
    """Podman would give twice the limit of memory and swap together."""
    limit = amount(limits, MEMORY)
    return {"limit": limit, "swap": limit + swap_bytes} if limit else {}


def _unified(node: NodeResources, swap_bytes: int, *, is_limited: bool) -> Mapping[str, str]:
    """Files of the cgroup that the OCI runtime has no field for, or none without a limit of memory. Swap is limited
    without one only where it is given out."""
    gives_swap = node.swap.is_limited_by_cgroup and node.swap.total_bytes > 0
    swap = {SWAP_MAX: str(swap_bytes)} if gives_swap and not is_limited else {}
    return {**(KILLED_AS_A_WHOLE if is_limited else {}), **swap}


def _oom_score(pod: Pod, container: Container, node: NodeResources) -> dict[str, int]:
    capacity = amount(node.capacity, MEMORY)
    if not capacity:
        return {}
    return {"oom_score_adj": within_reach(oom_score_adj(pod, container, capacity), node.least_oom_score_adj)}
