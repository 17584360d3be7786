"""Profiles of a worker's process, which the master asks for (`ipc.host.process.profiles`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.base import ProfileTaken, TakeProfile

if TYPE_CHECKING:
    from ipc.host.process.profiles import Profiler


class ProfileRequests:
    """Answers each beside the worker's work."""

    def __init__(self, send: Callable[[ProfileTaken], Awaitable[None]]) -> None:
        self._send = send
        self._tasks = BackgroundTasks()
        self._profiler: Profiler | None = None

    def take(self, request: TakeProfile) -> None:
        """Begin the profile; its answer follows."""
        self._tasks.spawn(self._answer(request), name=f"profile {request.profile!r}")

    def close(self) -> None:
        """Break off what is being taken."""
        self._tasks.cancel()

    async def _answer(self, request: TakeProfile) -> None:
        if self._profiler is None:
            from ipc.host.process.profiles import Profiler  # most workers are never profiled

            self._profiler = Profiler()
        code, text = await self._profiler.take(request.profile, request.seconds, request.action)
        await self._send(ProfileTaken(number=request.number, code=code, text=text))
