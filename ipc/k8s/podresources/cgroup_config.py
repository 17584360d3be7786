"""Values of the cgroup of a pod, from its requests and limits. Pure.

Mirrors ResourceConfigForPod and the conversions of pkg/kubelet/cm/helpers_linux.go. MemoryQoS, which is alpha there, is
not here; neither is hugetlb, which no user is delegated.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import CfsQuota
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_limits, pod_requests
from ipc.k8s.podresources.qos import compute_pod_qos

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
SHARES_PER_CPU: Final = 1024
MIN_QUOTA_US: Final = 1_000
MILLI: Final = 1000
NO_LIMIT: Final = -1
_MAX_WEIGHT: Final = 10_000


class CgroupConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits and weight of a cgroup (pkg/kubelet/cm/types.go, ResourceConfig). None: not to be changed."""

    memory: int | None = None
    """In bytes; NO_LIMIT for none."""
    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds of each period; NO_LIMIT for none."""
    cpu_period: int | None = None
    pids_limit: int | None = None
    """Most processes and threads."""


def pod_cgroup_config(pod: Pod, cfs: CfsQuota) -> CgroupConfig:
    """ResourceConfigForPod: limits where the pod has its own, or all its containers have one, which add up."""
    if compute_pod_qos(pod) == "BestEffort":
        return CgroupConfig(cpu_shares=MIN_SHARES)
    limits = pod_limits(pod)
    cpu, memory = (limits[name] if _is_limited(pod, name) else 0 for name in (CPU, MEMORY))
    quota = milli_cpu_to_quota(cpu, cfs.period_us) if cfs.enforced else NO_LIMIT
    return CgroupConfig(
        memory=memory or None,
        cpu_shares=milli_cpu_to_shares(pod_requests(pod).get(CPU, 0)),
        cpu_quota=quota if cpu else None,
        cpu_period=cfs.period_us if cpu else None,
    )


def _is_limited(pod: Pod, name: str) -> bool:
    if pod.spec.resources is not None and amount(pod.spec.resources.limits, name):
        return True
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return all(amount(container.resources.limits, name) for container in containers)


def without_lost_limits(seen: CgroupConfig, desired: CgroupConfig) -> CgroupConfig:
    """``desired``, with a word for a limit that the cgroup has and is to have no more."""
    lost_memory = desired.memory is None and seen.memory is not None
    lost_quota = desired.cpu_quota is None and seen.cpu_quota is not None
    return msgspec.structs.replace(
        desired,
        memory=NO_LIMIT if lost_memory else desired.memory,
        cpu_quota=NO_LIMIT if lost_quota else desired.cpu_quota,
        cpu_period=seen.cpu_period if lost_quota else desired.cpu_period,
    )


def is_given(seen: CgroupConfig, desired: CgroupConfig, page_bytes: int) -> bool:
    """Whether a cgroup has these values already: it limits memory in pages, and weighs more coarsely than shares. How
    many processes it may have is not looked at."""
    is_weighed = desired.cpu_shares is None or _weight(seen) == _weight(desired)
    return is_weighed and _limits(seen, page_bytes) == _limits(desired, page_bytes)


def _weight(config: CgroupConfig) -> int | None:
    return shares_to_weight(config.cpu_shares) if config.cpu_shares is not None else None


def _limits(config: CgroupConfig, page_bytes: int) -> tuple[int | None, ...]:
    memory, quota = (None if limit == NO_LIMIT else limit for limit in (config.memory, config.cpu_quota))
    pages = memory // page_bytes if memory is not None else None
    return (pages, quota, config.cpu_period if quota is not None else None)


def milli_cpu_to_shares(milli_cpu: int) -> int:
    """MilliCPUToShares."""
    return min(max(milli_cpu * SHARES_PER_CPU // MILLI, MIN_SHARES), MAX_SHARES)


def milli_cpu_to_quota(milli_cpu: int, period_us: int) -> int:
    """MilliCPUToQuota: microseconds of each period."""
    return max(milli_cpu * period_us // MILLI, MIN_QUOTA_US)


def shares_to_weight(shares: int) -> int:
    """cpu.weight of cgroup v2 (getCPUWeight, pkg/kubelet/cm/cgroup_v2_manager_linux.go)."""
    within = min(max(shares, MIN_SHARES), MAX_SHARES)
    return 1 + (within - MIN_SHARES) * (_MAX_WEIGHT - 1) // (MAX_SHARES - MIN_SHARES)


def weight_to_shares(weight: int) -> int:
    """cpuWeightToCPUShares, of the same source."""
    return MIN_SHARES + (weight - 1) * (MAX_SHARES - MIN_SHARES) // (_MAX_WEIGHT - 1)
