"""Resources that this node can give to pods, read once when the agent starts.

Mirrors what the kubelet tells as its node's capacity and allocatable (pkg/kubelet/nodestatus/setters.go, MachineInfo).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.quantity import Notation, format_quantity
from ipc.k8s.eviction.thresholds import parse_thresholds
from ipc.k8s.nodestatus.allocatable import reservation, reservation_problem, without
from ipc.k8s.podresources.devices import Devices
from ipc.k8s.podresources.node_resources import FIRST_PORT, CfsQuota, NodeResources, PodCgroups, SwapLimits
from ipc.k8s.podresources.pod_cgroups import PID, root_of_instance
from supervisor.admission.cgroups import delegated_controllers, limits_swap, managed_cgroup
from supervisor.admission.node_devices import capacity_of, not_healthy, read_devices
from supervisor.config.containers_conf import SYSTEMD
from supervisor.config.settings import Settings, SettingsError

LIMITED_SWAP: Final = "LimitedSwap"
PID_LIMITS: Final = (Path("/proc/sys/kernel/pid_max"), Path("/proc/sys/kernel/threads-max"))
PODS: Final = "pods"
"""Item of enforceNodeAllocatable by which all pods are held to what there is for them."""
UNPRIVILEGED_PORT_START: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the machine."""

    cpus: int
    memory_bytes: int
    storage_bytes: int
    """Size of the file system on which the pods' files lie."""
    controllers: frozenset[str] = frozenset()
    """cgroup v2 controllers that are delegated to this user."""
    swap_bytes: int = 0
    limits_swap: bool = False
    """Whether the kernel limits swap by cgroup, and this user may set such a limit."""
    devices: Devices = {}
    oom_score_adj: int = 0
    """The oom_score_adj of this process."""
    unprivileged_port_start: int = FIRST_PORT
    """The first port that is not root's."""
    max_pids: int = 0
    """Most processes and threads of the kernel."""
    managed_cgroup: str = ""
    """Directory of the cgroup in which this user's systemd makes slices for pods; empty: they get none."""


def read_machine(settings: Settings, cgroup_manager: str) -> Machine:
    """``cgroup_manager``: Podman's, by its configuration. CPUs are those that this process, and so every container, may
    run on; storage is the file system of ``stateDir``, or of the nearest directory above it that is there; devices are
    those of the configuration. Raises OSError."""
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        storage_bytes=shutil.disk_usage(existing_part(settings.state_dir)).total,
        controllers=delegated_controllers() or frozenset(),
        devices=read_devices(settings),
        swap_bytes=_swap_bytes(),
        limits_swap=limits_swap(),
        oom_score_adj=int(Path("/proc/self/oom_score_adj").read_text()),
        unprivileged_port_start=_unprivileged_port_start(),
        max_pids=min(int(file.read_text()) for file in PID_LIMITS),
        managed_cgroup=managed_cgroup() if settings.cgroups_per_qos and cgroup_manager == SYSTEMD else "",
    )


def _swap_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("SwapTotal:")), 0)


def _unprivileged_port_start() -> int:
    try:
        return int(UNPRIVILEGED_PORT_START.read_text())
    except (OSError, ValueError):
        return FIRST_PORT


def existing_part(path: Path) -> Path:
    """The path, or the nearest directory above it that is there and can be looked at."""
    return next(part for part in (path, *path.absolute().parents) if os.path.exists(part))


def node_resources(machine: Machine, settings: Settings) -> NodeResources:
    """Raises SettingsError for a reservation of more than there is."""
    capacity = {
        "cpu": format_quantity(Fraction(machine.cpus)),
        "memory": _bytes(machine.memory_bytes),
        "ephemeral-storage": _bytes(machine.storage_bytes),
        **capacity_of(machine.devices),
    }
    reserved = reservation(
        capacity,
        (settings.system_reserved, settings.kube_reserved, not_healthy(machine.devices)),
        parse_thresholds(settings.eviction),
    )
    if problem := reservation_problem(capacity, reserved):
        raise SettingsError("", "kubeReserved, systemReserved, evictionHard", problem)
    return NodeResources(
        capacity=capacity,
        reserved=reserved,
        allocatable=without(capacity, reserved),
        devices=machine.devices,
        controllers=machine.controllers,
        cfs=CfsQuota(enforced=settings.cpu_cfs_quota, period_us=round(settings.cpu_cfs_quota_period_s * 1e6)),
        swap=SwapLimits(
            is_limited_by_cgroup=machine.limits_swap,
            total_bytes=machine.swap_bytes if settings.memory_swap.swap_behavior == LIMITED_SWAP else 0,
        ),
        pod_pids_limit=max(settings.pod_pids_limit, 0),
        pod_cgroups=_pod_cgroups(machine, settings),
        pods_limit=_pods_limit(machine, settings, capacity),
        least_oom_score_adj=machine.oom_score_adj,
        unprivileged_port_start=machine.unprivileged_port_start,
    )


def _pod_cgroups(machine: Machine, settings: Settings) -> PodCgroups | None:
    if not machine.managed_cgroup:
        return None
    return PodCgroups(
        root=root_of_instance(settings.instance_name),
        directory=machine.managed_cgroup,
        enforced=PODS in settings.enforce_node_allocatable,
    )


def _pods_limit(machine: Machine, settings: Settings, capacity: Mapping[str, str]) -> dict[str, str]:
    """Capacity without what is reserved for others: what evictionHard wants to be free is pods' to use until they are
    evicted (getNodeAllocatableInternalAbsolute)."""
    limited = {name: capacity[name] for name in ("cpu", "memory")}
    if machine.max_pids:
        limited[PID] = str(machine.max_pids)
    return without(limited, reservation(limited, (settings.system_reserved, settings.kube_reserved), ()))


def _bytes(count: int) -> str:
    return format_quantity(Fraction(count), Notation.BINARY)
