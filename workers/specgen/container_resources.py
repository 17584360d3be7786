"""Resources of a container and of its pod, as fields of libpod's SpecGenerators. Pure.

Mirrors generateLinuxContainerResources (pkg/kubelet/kuberuntime/kuberuntime_container_linux.go) and the conversions of
pkg/kubelet/cm/helpers_linux.go. Only what a delegated controller can enforce is asked for: a limit that is not enforced
must not show (`supervisor.admission.predicates` reports it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ipc.api.v1.base import ResourceList
from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.podresources.allocation import effective_limits
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_requests import CPU, MEMORY, amount, pod_requests
from workers.kubecontainer.cgroup_config import CgroupConfig
from workers.specgen.oom_score import oom_score_adj, within_reach

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
SHARES_PER_CPU: Final = 1024
QUOTA_PERIOD_US: Final = 100_000
"""cpuCFSQuotaPeriod, in microseconds."""
MIN_QUOTA_US: Final = 1_000
MILLI: Final = 1000
KILLED_AS_A_WHOLE: Final = {"memory.oom.group": "1"}
"""Podman takes it among the limits; of the `unified` that its SpecGenerator has, too, it makes nothing."""


def container_resources(pod: Pod, container: Container, node: NodeResources) -> dict[str, Any]:
    """Fields of a SpecGenerator."""
    limits = effective_limits(pod.spec.resources, container.resources)
    memory = _memory(limits) if "memory" in node.controllers else {}
    asked: dict[str, Mapping[str, Any]] = {
        "cpu": _cpu(container.resources.requests, limits) if "cpu" in node.controllers else {},
        "memory": memory,
        "unified": KILLED_AS_A_WHOLE if memory else {},
    }
    given = {name: values for name, values in asked.items() if values}
    return {**({"resource_limits": given} if given else {}), **_oom_score(pod, container, node)}


def pod_resources(pod: Pod, node: NodeResources) -> dict[str, Any]:
    """Fields of a PodSpecGenerator: what the cgroup of the whole pod gets, which there is where systemd manages them
    (ResourceConfigForPod, pkg/kubelet/cm/helpers_linux.go). The weights of containers count within it.

    Different on purpose: limits are the pod's own only. Those of all containers, which upstream adds up, hold by
    themselves, and change when one container is replaced.
    """
    limits = pod.spec.resources.limits if pod.spec.resources is not None else {}
    memory = amount(limits, MEMORY)
    asked = {
        "cpu": {"shares": milli_cpu_to_shares(pod_requests(pod).get(CPU, 0)), **_quota(limits)},
        "memory": {"limit": memory} if memory else {},
    }
    given = {name: values for name, values in asked.items() if values and name in node.controllers}
    return {"resource_limits": given} if given else {}


def pod_cgroup_config(pod: Pod, node: NodeResources) -> CgroupConfig:
    """The same as values of the cgroup's files, for one that there is."""
    given = pod_resources(pod, node).get("resource_limits", {})
    cpu, memory = given.get("cpu", {}), given.get("memory", {})
    return CgroupConfig(
        memory=memory.get("limit"),
        cpu_shares=cpu.get("shares"),
        cpu_quota=cpu.get("quota"),
        cpu_period=cpu.get("period"),
    )


def _cpu(requests: ResourceList, limits: ResourceList) -> Mapping[str, int]:
    asked, limit = amount(requests, CPU), amount(limits, CPU)
    return {"shares": milli_cpu_to_shares(asked if CPU in requests else limit), **_quota(limits)}


def _quota(limits: ResourceList) -> Mapping[str, int]:
    limit = amount(limits, CPU)
    return {"quota": milli_cpu_to_quota(limit), "period": QUOTA_PERIOD_US} if limit else {}


def milli_cpu_to_shares(milli_cpu: int) -> int:
    """MilliCPUToShares."""
    return min(max(milli_cpu * SHARES_PER_CPU // MILLI, MIN_SHARES), MAX_SHARES)


def milli_cpu_to_quota(milli_cpu: int, period_us: int = QUOTA_PERIOD_US) -> int:
    """MilliCPUToQuota: microseconds of each period."""
    return max(milli_cpu * period_us // MILLI, MIN_QUOTA_US)


def _memory(limits: ResourceList) -> Mapping[str, int]:
    """Without swap: Podman would give twice the limit of both together."""
    limit = amount(limits, MEMORY)
    return {"limit": limit, "swap": limit} if limit else {}


def _oom_score(pod: Pod, container: Container, node: NodeResources) -> dict[str, int]:
    capacity = amount(node.capacity, MEMORY)
    if not capacity:
        return {}
    return {"oom_score_adj": within_reach(oom_score_adj(pod, container, capacity), node.least_oom_score_adj)}
