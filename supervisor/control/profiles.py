"""Profiles of the master, and of the workers, which it asks for them."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Final

from ipc.link.messages.api_server import ReadProfile, Reply
from ipc.link.messages.base import ProfileTaken, TakeProfile
from ipc.link.wire.boot import Role
from supervisor.processes.child_manager import ChildManager

if TYPE_CHECKING:
    from ipc.host.process.profiles import Profiler

MASTER: Final = "master"
SPARE_S: Final = 10.0
"""How much longer than its sampling a worker's profile may take, in seconds."""
PROFILED: Final = frozenset({Role.NODE_WORKER, Role.POD_WORKER})
"""Roles whose processes take profiles. The dialer must not have a second thread, Podman's service is no Python."""


class Profiles:
    """For the admin requests: one answer each, within the time that the request has."""

    def __init__(self, children: ChildManager) -> None:
        self._children = children
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[ProfileTaken]] = {}
        self._own: Profiler | None = None

    async def read(self, request: ReadProfile) -> Reply:
        """Take a profile; the reply's message is its text."""
        if request.process == MASTER:
            code, text = await self._profiler().take(request.profile, request.seconds, request.action)
            return Reply(request_id=request.request_id, code=code, message=text)
        slot = self._children.slot_named(request.process)
        if slot is None or self._children.role(slot) not in PROFILED:
            message = f'there are no profiles of "{request.process}": only of {MASTER}, api, node and pod workers\n'
            return Reply(request_id=request.request_id, code=404, message=message)
        return await self._of(slot, request)

    def taken(self, profile: ProfileTaken) -> None:
        """A worker has answered. A profile that nobody waits for any more is dropped."""
        waiter = self._waiting.get(profile.number)
        if waiter is not None and not waiter.done():
            waiter.set_result(profile)

    async def _of(self, slot: int, request: ReadProfile) -> Reply:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._children.send(
                slot,
                TakeProfile(number=number, profile=request.profile, seconds=request.seconds, action=request.action),
            )
            async with asyncio.timeout(request.seconds + SPARE_S):
                taken = await self._waiting[number]
        except TimeoutError:
            message = f"{request.process} has not answered within {request.seconds + SPARE_S:g} s\n"
            return Reply(request_id=request.request_id, code=504, message=message)
        finally:
            del self._waiting[number]
        return Reply(request_id=request.request_id, code=taken.code, message=taken.text)

    def _profiler(self) -> Profiler:
        """Imported when somebody asks: most masters are never profiled."""
        if self._own is None:
            from ipc.host.process.profiles import Profiler

            self._own = Profiler()
        return self._own
