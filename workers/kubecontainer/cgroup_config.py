"""Values of cgroups (v2), as the runtime shows them."""

from __future__ import annotations

import msgspec


class CgroupConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits and weight of a cgroup (pkg/kubelet/cm/types.go, ResourceConfig). None: no limit, or not to be changed."""

    memory: int | None = None
    """In bytes."""
    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds of each period."""
    cpu_period: int | None = None


class CgroupReading(msgspec.Struct, frozen=True, kw_only=True):
    """A cgroup as it is."""

    config: CgroupConfig = CgroupConfig()
    memory_usage: int | None = None
    """In bytes; None where nobody can tell."""
