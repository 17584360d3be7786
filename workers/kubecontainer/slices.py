"""Protocol of the slices in which pods lie where systemd manages cgroups (`workers.cm.user_slices`)."""

from __future__ import annotations

from typing import Protocol

from ipc.podresources.cgroup_config import CgroupConfig
from workers.kubecontainer.cgroup_reading import CgroupReading


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
