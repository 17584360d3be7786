"""A cgroup (v2) of a container as the runtime shows it."""

from __future__ import annotations

import msgspec

from ipc.podresources.cgroup_config import CgroupConfig


class CgroupReading(msgspec.Struct, frozen=True, kw_only=True):
    """A cgroup as it is."""

    config: CgroupConfig = CgroupConfig()
    """None: no limit, or nobody can tell."""
    memory_usage: int | None = None
    """In bytes; None where nobody can tell."""
