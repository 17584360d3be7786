"""Properties of a slice as busctl(1) takes them, from the values of its cgroup (systemd.resource-control(5)). Pure.

What upstream gets by libcontainer's systemd driver (pkg/kubelet/cm/cgroup_manager_linux.go, toResources).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.podresources.cgroup_config import NO_LIMIT, CgroupConfig, shares_to_weight

NO_MAXIMUM: Final = (1 << 64) - 1
"""systemd's *infinity*."""
_US_PER_S: Final = 1_000_000


def slice_properties(config: CgroupConfig) -> tuple[str, ...]:
    """The array of properties, with its length before it; those of which the config says nothing are absent."""
    found = [("t", name, number) for name, number in _numbers(config)]
    return (str(len(found)), *(word for kind, name, number in found for word in (name, kind, str(number))))


def _numbers(config: CgroupConfig) -> Iterator[tuple[str, int]]:
    if config.cpu_shares is not None:
        yield "CPUWeight", shares_to_weight(config.cpu_shares)
    if config.cpu_quota is not None and config.cpu_period:
        is_limited = config.cpu_quota != NO_LIMIT
        yield "CPUQuotaPeriodUSec", config.cpu_period
        yield "CPUQuotaPerSecUSec", config.cpu_quota * _US_PER_S // config.cpu_period if is_limited else NO_MAXIMUM
    if config.memory is not None:
        yield "MemoryMax", config.memory if config.memory != NO_LIMIT else NO_MAXIMUM
    if config.pids_limit is not None:
        yield "TasksMax", config.pids_limit
