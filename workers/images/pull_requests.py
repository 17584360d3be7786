"""The pulls that pods of this worker wait for. They are the master's: it has one per image for the whole node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ipc.kubecontainer.registry_login import Pull
from ipc.messages.base import PullEnded, PullProgress
from ipc.messages.pod_worker import AbandonPull, PullImage

Send = Callable[[PullImage | AbandonPull], Awaitable[None]]
Hear = Callable[[str], None]
"""Takes words about how far a pull has got."""


class _Wish(msgspec.Struct, frozen=True, eq=False):
    """Somebody who waits; two of them are never equal."""

    uid: str
    pull: Pull
    hear: Hear
    answer: asyncio.Future[PullEnded]


class PullRequests:
    """Asks, waits, and takes the wish back, whatever ends the waiting."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._wishes: list[_Wish] = []

    async def pull(self, uid: str, what: Pull, hear: Hear) -> PullEnded:
        """The end of that pull. To cancel it is to give it up."""
        request = _Wish(uid, what, hear, asyncio.get_running_loop().create_future())
        self._wishes.append(request)
        try:
            await self._send(PullImage(uid=uid, reference=what.reference, logins=what.logins))
            return await request.answer
        finally:
            self._wishes.remove(request)
            if not any((other.uid, other.pull) == (uid, what) for other in self._wishes):
                # Also after an answer: it may be one that had been on its way when the wish was sent.
                await self._send(AbandonPull(uid=uid, reference=what.reference, logins=what.logins))

    def progressed(self, progress: PullProgress) -> None:
        for request in self._of(progress.pull):
            request.hear(progress.words)

    def ended(self, ended: PullEnded) -> None:
        for request in self._of(ended.pull):
            request.answer.set_result(ended)

    def _of(self, what: Pull) -> list[_Wish]:
        return [request for request in self._wishes if request.pull == what and not request.answer.done()]
