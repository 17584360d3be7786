"""One pod's world on real Podman, for the tests of syncs."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.link.messages.pod_worker import SyncDone, WorkType
from tests.support import pods
from tests.support.podman_service import IMAGE, PodmanService
from tests.support.sync import Host
from workers.logs import layout
from workers.podman import NO_SLICES, PodmanRuntime

DEADLINE_S = 20.0
POLITE = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def container(name: str, script: str = POLITE, **fields: Any) -> Container:
    return pods.container(name, **{"image": IMAGE, "args": ("sh", "-c", script), **fields})


class PodmanHost(Host):
    def __init__(self, logs_dir: Path, service: PodmanService, pod_cgroups: PodCgroups = NO_SLICES) -> None:
        self.uid, self.name = str(uuid.uuid4()), "web"
        instance = service.new_instance()

        def runtime() -> PodmanRuntime:
            return PodmanRuntime(service.socket, instance, pod_cgroups=pod_cgroups)

        super().__init__(logs_dir, SystemClock(), runtime, instance)

    def pod(self, *containers: Container, **fields: Any) -> Pod:
        return pods.pod(*containers, **{"uid": self.uid, "name": self.name, **fields})

    async def containers(self) -> dict[str, RuntimeContainerStatus]:
        """The newest of each name."""
        status = await self.observe(self.uid)
        return {c.name: c for c in reversed(status.containers)}

    async def until(self, name: str, state: ContainerState) -> RuntimeContainerStatus:
        """Wait until the newest container of that name is seen in that state."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = (await self.containers()).get(name)
                if found is not None and found.state is state:
                    return found
                await asyncio.sleep(0.05)

    def log(self, name: str, attempt: int) -> str:
        directory = layout.pod_directory(str(self.logs_dir), "default", self.name, self.uid)
        return layout.log_file(directory, name, attempt).read_text()

    async def logged(self, name: str, attempt: int, words: str) -> None:
        """Wait until the container has said that."""
        async with asyncio.timeout(DEADLINE_S):
            while words not in self.log(name, attempt):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        try:
            await self.sync(None, WorkType.TERMINATED, uid=self.uid, remove=True)
            assert (await self.observe(self.uid)).is_empty()
            assert list(self.logs_dir.iterdir()) == []
            assert not self.pods_dir.exists() or list(self.pods_dir.iterdir()) == []
        finally:
            await self.aclose()


def errors(done: SyncDone) -> list[str]:
    return [result.error for result in done.results if result.error]
