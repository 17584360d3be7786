"""Values of the cgroup of a pod, from its requests and limits. Pure.

Mirrors ResourceConfigForPod and the conversions of pkg/kubelet/cm/helpers_linux.go. MemoryQoS, which is alpha there, is
not here; neither is hugetlb, which no user is delegated.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.api.v1.pod import Pod
from ipc.podresources.node_resources import CfsQuota
from ipc.podresources.pod_requests import CPU, MEMORY, amount, pod_requests

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
    """In bytes."""
    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds of each period; NO_LIMIT for none."""
    cpu_period: int | None = None
    pids_limit: int | None = None
    """Most processes and threads."""


def pod_cgroup_config(pod: Pod, cfs: CfsQuota) -> CgroupConfig:
    """ResourceConfigForPod. Different on purpose: limits are the pod's own only. Those of all its containers, which
    upstream adds up, hold by themselves, and change when one container is replaced."""
    shares = milli_cpu_to_shares(pod_requests(pod).get(CPU, 0))
    limits = pod.spec.resources.limits if pod.spec.resources is not None else {}
    cpu, memory = amount(limits, CPU), amount(limits, MEMORY)
    quota = milli_cpu_to_quota(cpu, cfs.period_us) if cfs.enforced else NO_LIMIT
    return CgroupConfig(
        memory=memory or None,
        cpu_shares=shares,
        cpu_quota=quota if cpu else None,
        cpu_period=cfs.period_us if cpu else None,
    )


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
