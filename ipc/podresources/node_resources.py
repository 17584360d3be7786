"""Resources that this node can give to pods, found out once by the master: for admission, downward API and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

FIRST_PORT: Final = 1024
"""The first port that is not root's, unless the host says another one."""


class NodeResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Quantities as Kubernetes writes them."""

    capacity: Mapping[str, str] = msgspec.field(default_factory=dict)
    """cpu, memory, ephemeral-storage: all that there is."""
    reserved: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Kept from pods: kubeReserved, systemReserved, and what evictionHard wants to be free."""
    allocatable: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What pods may have together."""
    controllers: frozenset[str] = frozenset()
    """cgroup v2 controllers that are delegated to this user."""
    least_oom_score_adj: int = 0
    """The oom_score_adj of our own processes: a container's cannot be lower."""
    unprivileged_port_start: int = FIRST_PORT
    """The first port of the host that its users may give (net.ipv4.ip_unprivileged_port_start)."""
