"""Resources that this node can give to pods, and the cluster's view of the Node. The master measures them once, for
admission, downward API and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.scheduling import Taint
from ipc.k8s.podresources.devices import Devices

FIRST_PORT: Final = 1024
"""The first port that is not root's, unless the host says another one."""
DEFAULT_ROOT: Final = "rootlet"
"""Name of the cgroup of all pods of the agent that has the default name (kubepods)."""


class CfsQuota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How CPU limits are enforced (cpuCFSQuota, cpuCFSQuotaPeriod)."""

    enforced: bool = True
    period_us: int = 100_000


class SwapLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much swap containers may have (memorySwap.swapBehavior)."""

    is_limited_by_cgroup: bool = False
    """Whether the kernel limits swap by cgroup, and this user may set such a limit."""
    total_bytes: int = 0
    """Swap that burstable pods share in proportion to their requests of memory; 0: nobody gets any."""


class PodCgroups(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Slices of this user's systemd that pods lie in, by their QoS classes (cgroupsPerQOS)."""

    root: str = DEFAULT_ROOT
    """Name of the cgroup of all pods."""
    directory: str = ""
    """Directory of the cgroup of the user's service manager, in which that slice lies."""
    enforced: bool = True
    """Whether all pods together are held to what there is for them (enforceNodeAllocatable)."""


class NodeResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Quantities as Kubernetes writes them."""

    capacity: Mapping[str, str] = msgspec.field(default_factory=dict)
    """cpu, memory, ephemeral-storage, extended resources: all that there is."""
    reserved: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Kept from pods: kubeReserved, systemReserved, what evictionHard wants to be free, and unhealthy devices."""
    allocatable: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Amounts that pods may have together."""
    devices: Devices = msgspec.field(default_factory=dict)
    """Devices behind the extended resources."""
    controllers: frozenset[str] = frozenset()
    """cgroup v2 controllers that are delegated to this user."""
    cfs: CfsQuota = CfsQuota()
    swap: SwapLimits = SwapLimits()
    pod_pids_limit: int = 0
    """Most processes of a pod where it has a slice, and of each of its containers; 0: no limit but Podman's own."""
    pod_cgroups: PodCgroups | None = None
    """None: pods lie where Podman puts them."""
    pods_limit: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Amounts that the slice of all pods is held to: the capacity without kubeReserved and systemReserved."""
    least_oom_score_adj: int = 0
    """The oom_score_adj of our own processes: a container's cannot be lower."""
    unprivileged_port_start: int = FIRST_PORT
    """The first port of the host that its users may give (net.ipv4.ip_unprivileged_port_start)."""
    labels: Mapping[str, str] | None = None
    """Labels of the Node in its cluster; None without one, and before it was read."""
    no_execute: tuple[Taint, ...] = ()
    """The Node's taints whose effect is NoExecute."""
