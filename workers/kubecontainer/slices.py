"""Slices in which pods lie where systemd manages cgroups: their protocol (`workers.cm.user_slices`), and a cgroup's
values as they are."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ipc.k8s.podresources.cgroup_config import CgroupConfig


class CgroupReading(msgspec.Struct, frozen=True, kw_only=True):
    """A cgroup (v2), of a slice or a container, as it is."""

    config: CgroupConfig = CgroupConfig()
    """None: no limit, or nobody can tell."""
    memory_usage: int | None = None
    """In bytes; None where nobody can tell."""


class Slices(Protocol):
    """Slices by their names. Looks read a few small files; the rest raise `RuntimeCallError`."""

    def exists(self, name: str) -> bool:
        """Whether the slice has a cgroup."""

    def read(self, name: str) -> CgroupReading:
        """Limits, weight and use; nothing is known of a slice that is not there."""

    def is_populated(self, name: str) -> bool:
        """Whether a process is in it or below."""

    def pods(self) -> tuple[str, ...]:
        """Slices of pods, of all QoS classes. Raises OSError."""

    def directory_of(self, uid: str) -> str:
        """Directory of the slice of the pod with that UID; empty when it has none."""

    async def start(self, name: str, config: CgroupConfig) -> None:
        """Make the slice with these values, or give them to the one that is there."""

    async def stop(self, name: str) -> None:
        """End the slice and what is in it. None of that name is success."""
