"""Pulls that pods of this worker wait for. The master runs one per image for the whole node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ipc.k8s.podobjects.registry_login import Pull
from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.pod_worker import AbandonPull, PullImage

Send = Callable[[PullImage | AbandonPull], Awaitable[None]]
OnProgress = Callable[[str], None]
"""Takes texts about the progress of a pull."""


class _Waiter(msgspec.Struct, frozen=True, eq=False):
    """One pod that waits for a pull; two of them are never equal."""

    uid: str
    pull: Pull
    on_progress: OnProgress
    answer: asyncio.Future[PullEnded]


class PullRequests:
    """Requests pulls of the master, waits for them, and abandons each request when the waiting ends."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiters: list[_Waiter] = []

    async def pull(self, uid: str, pull: Pull, on_progress: OnProgress) -> PullEnded:
        """The end of that pull. Cancelling it abandons the request."""
        waiter = _Waiter(uid, pull, on_progress, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await self._send(PullImage(uid=uid, **pull.parts))
            return await waiter.answer
        finally:
            self._waiters.remove(waiter)
            if not any((other.uid, other.pull) == (uid, pull) for other in self._waiters):
                # Also after an answer: it may be one that had been on its way when the request was sent.
                await self._send(AbandonPull(uid=uid, **pull.parts))

    def progressed(self, progress: PullProgress) -> None:
        for waiter in self._of(progress.pull):
            waiter.on_progress(progress.words)

    def ended(self, ended: PullEnded) -> None:
        for waiter in self._of(ended.pull):
            waiter.answer.set_result(ended)

    def _of(self, pull: Pull) -> list[_Waiter]:
        return [waiter for waiter in self._waiters if waiter.pull == pull and not waiter.answer.done()]
