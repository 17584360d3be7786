"""A played master whose answers about applied objects are those of the real sources."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.api_server import Reply
from supervisor.config.settings import Seconds, Settings
from supervisor.control.admin_requests import AdminRequests
from supervisor.protocol.commands import Send
from supervisor.protocol.source_updates import PodUpdate
from supervisor.sources.manager import Change, SourceManager
from tests.support.api_server import Master

LOOK_PERIOD: Final = Seconds(0.1)


class _Agent:
    """The parts of an agent that requests about objects ask."""

    def is_going_down(self, namespace: str, name: str) -> bool:
        return False


class SourceMaster:
    """Sources in a directory, asked through the admin socket."""

    def __init__(self, master: Master, directory: Path, memory: Path) -> None:
        """``memory`` is where Secrets are kept."""
        self.manifests = directory / "manifests"
        self.manifests.mkdir()
        self.state = directory / "state"
        settings = Settings(
            instance_name="test",
            static_pod_path=self.manifests,
            state_dir=self.state,
            memory_dir=memory,
            file_check_frequency_s=LOOK_PERIOD,
        )
        self.sources = SourceManager(settings, SystemClock())
        self.changes: list[Change] = []
        """Everything that was merged."""
        self._changed = asyncio.Condition()
        self._requests = AdminRequests(_Agent(), self.sources, None, self._send)  # type: ignore[arg-type]
        self._master = master
        master.answer = self._answer

    def _send(self, command: Send) -> None:
        assert isinstance(command.message, Reply)
        self._master.feed(command.message)

    def _answer(self, request: Any) -> None:
        self._requests.take(request)

    async def follow(self) -> None:
        async with contextlib.aclosing(self.sources.watch()) as changes:  # type: ignore[type-var]
            async for change in changes:
                async with self._changed:
                    self.changes.append(change)
                    self._changed.notify_all()

    async def ready(self) -> None:
        """Every source was read."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.sources.all_ready)

    async def stated(self, name: str) -> None:
        """A pod of that name was merged."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(pod.metadata.name == name for pod in self.pods()))

    def pods(self) -> list[Pod]:
        """Pods of all updates so far."""
        updates = (update for change in self.changes for update in change.updates)
        return [pod for update in updates if isinstance(update, PodUpdate) for pod in update.pods]

    def close(self) -> None:
        self._requests.close()


@contextlib.asynccontextmanager
async def real_sources(master: Master, directory: Path, memory: Path) -> AsyncIterator[SourceMaster]:
    """Answers from now on; every source was read."""
    made = SourceMaster(master, directory, memory)
    master.ready()
    following = asyncio.create_task(made.follow())
    try:
        async with asyncio.timeout(30):
            await made.ready()
        yield made
    finally:
        made.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
