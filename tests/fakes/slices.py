"""Slices of a fake systemd (`workers.kubecontainer.slices.Slices`): those into which a FakePodman puts containers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.k8s.podresources.pod_cgroups import POD_PREFIX, parse_slice
from tests.fakes.podman import FakePodman
from workers.kubecontainer.slices import CgroupReading

Call = Callable[[str, Callable[[], None]], Awaitable[Any]]
"""Carries out a verb, or fails it."""


class FakeSlices:
    """Sight that one process has of the slices."""

    def __init__(self, podman: FakePodman, call: Call) -> None:
        self._podman = podman
        self._call = call

    def exists(self, name: str) -> bool:
        return name in self._podman.slices

    def read(self, name: str) -> CgroupReading:
        config = self._podman.slices.get(name)
        return CgroupReading(config=config, memory_usage=0) if config is not None else CgroupReading()

    def is_populated(self, name: str) -> bool:
        return any(c.cgroup_parent == name and c.state == "running" for c in self._podman.containers.values())

    def pods(self) -> tuple[str, ...]:
        return tuple(name for name in self._podman.slices if parse_slice(name)[-1].startswith(POD_PREFIX))

    def directory_of(self, uid: str) -> str:
        return ""

    async def start(self, name: str, config: CgroupConfig) -> None:
        await self._call("start_slice", lambda: self._podman.start_slice(name, config))

    async def stop(self, name: str) -> None:
        await self._call("stop_slice", lambda: self._podman.stop_slice(name))
