"""Values of the cgroups of pods and QoS classes, from requests and limits. Pure.

Mirrors ResourceConfigForPod and the conversions of pkg/kubelet/cm/helpers_linux.go, getCgroupConfig
(node_container_manager_linux.go) and ToSystemd (cgroup_manager_linux.go). MemoryQoS, which is alpha there, is not here;
neither is hugetlb, which no user is delegated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ipc.api.v1.base import ResourceList
from ipc.api.v1.pod import Pod
from ipc.podresources.node_resources import CfsQuota
from ipc.podresources.pod_requests import CPU, MEMORY, amount, pod_requests

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
SHARES_PER_CPU: Final = 1024
MIN_QUOTA_US: Final = 1_000
MILLI: Final = 1000
NO_LIMIT: Final = -1
PIDS: Final = "pid"
"""Name of process ids among reserved resources (pkg/kubelet/stats/pidlimit)."""
_MAX_WEIGHT: Final = 10_000


class CgroupConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits and weight of a cgroup (pkg/kubelet/cm/types.go, ResourceConfig). None: not to be changed."""

    memory: int | None = None
    """In bytes."""
    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds of each period; NO_LIMIT for none."""
    cpu_period: int | None = None
    pids: int | None = None


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


def resources_cgroup_config(resources: ResourceList) -> CgroupConfig:
    """Values of a cgroup that is to have these resources, and no more (getCgroupConfig). CPU is a weight only."""
    return CgroupConfig(
        memory=amount(resources, MEMORY) if MEMORY in resources else None,
        cpu_shares=milli_cpu_to_shares(amount(resources, CPU)) if CPU in resources else None,
        pids=amount(resources, PIDS) if PIDS in resources else None,
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


def slice_name(parts: Sequence[str]) -> str:
    """Name of systemd's slice for a cgroup, each part within the one before: a dash in a part would be a level of its
    own."""
    return "-".join(part.replace("-", "_") for part in parts) + ".slice" if parts else "/"


def slice_path(parts: Sequence[str]) -> str:
    """Path of that slice below its service manager's cgroup, which has a directory for each dash."""
    return "/" + "/".join(_slices(parts))


def _slices(parts: Sequence[str]) -> Iterator[str]:
    return (slice_name(parts[:end]) for end in range(1, len(parts) + 1))
