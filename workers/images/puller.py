"""Runs the pulls that the master has given a turn. None of them delays another, or anything else of the node worker."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.host.clock import Clock
from ipc.host.tasks import BackgroundTasks
from ipc.kubecontainer.registry_login import Pull, RegistryLogin
from ipc.messages.base import PullEnded, PullProgress
from workers.images.pull_records import PullRecords
from workers.kubecontainer.runtime import ErrorKind, Runtime, RuntimeCallError

PROGRESS_PERIOD_S: Final = 5.0
"""How often a pull reports at most how far it has got, in seconds."""
PRUNED_PER_PULL: Final = 8
"""Images that are looked for after each pull with a login, so that records of those that are gone do not pile up:
those that nobody has looked for the longest."""
MAX_PULLS: Final = 100
"""Pulls under way. Each has a connection and a thread of its own; how many there are is the master's decision."""

Send = Callable[[PullProgress | PullEnded], Awaitable[None]]

log = logging.getLogger(__name__)


class ImagePuller:
    """The pulls under way, one per image. Each one begun is answered by exactly one PullEnded."""

    def __init__(self, runtime: Runtime, clock: Clock, rights: PullRecords, send: Send) -> None:
        self._runtime = runtime
        self._clock = clock
        self._rights = rights
        self._send = send
        self._flights: dict[Pull, asyncio.Task[str]] = {}
        self._tasks = BackgroundTasks()

    async def start(self, pull: Pull) -> None:
        """Begin a pull. The runtime's verb has the deadline."""
        reference = pull.reference
        if pull in self._flights or len(self._flights) >= MAX_PULLS:
            log.error("protocol error: %s is to be pulled, and %d pulls are under way", reference, len(self._flights))
            await self._send(_failed(pull, ErrorKind.INTERNAL, "too many pulls"))
            return
        words: deque[str] = deque(maxlen=1)
        work = self._tasks.spawn(
            self._pull(pull, words.append), name=f"pull of {reference}", expected=(RuntimeCallError,)
        )
        self._flights[pull] = work
        self._tasks.spawn(
            self._report(pull, work, words),
            name=f"report on the pull of {reference}",
            on_failure=lambda _: self._report_failed(pull),
        )

    def cancel(self, pull: Pull) -> None:
        """Break it off, if it has not come to its end."""
        work = self._flights.get(pull)
        if work is not None:
            work.cancel()

    async def close(self) -> None:
        """Break off everything; nobody is told."""
        await self._tasks.close()

    async def _pull(self, pull: Pull, hear: Callable[[str], None]) -> str:
        """The image's id. With several logins each is tried until one is good (pullImage,
        pkg/kubelet/kuberuntime/kuberuntime_image.go). Raises RuntimeCallError."""
        *others, last = pull.logins or (None,)
        for login in others:
            try:
                return await self._pulled_by(pull.reference, hear, login)
            except RuntimeCallError as error:
                if error.kind is not ErrorKind.PULL:
                    raise
        return await self._pulled_by(pull.reference, hear, last)

    async def _pulled_by(self, reference: str, hear: Callable[[str], None], login: RegistryLogin | None) -> str:
        """Noted before anybody hears of it: from then on the image is there. Raises RuntimeCallError."""
        self._rights.intend(reference, login)
        try:
            id = await self._runtime.pull_image(reference, hear, login)
        except (RuntimeCallError, asyncio.CancelledError):
            self._rights.withdraw(reference, login)
            raise
        self._rights.grant(reference, id, login)
        return id

    async def _prune_rights(self) -> None:
        for image_id, at in self._rights.oldest(PRUNED_PER_PULL).items():
            try:
                if await self._runtime.inspect_image(image_id) is None:
                    self._rights.forget(image_id, at)
                else:
                    self._rights.seen(image_id)
            except (RuntimeCallError, OSError) as error:
                log.warning("cannot look whether the image of record %s is there: %s", image_id, error)
                return

    async def _report(self, pull: Pull, work: asyncio.Task[str], words: deque[str]) -> None:
        started_at = self._clock.now().mono
        while not (await asyncio.wait({work}, timeout=PROGRESS_PERIOD_S))[0]:
            if words:
                progress = PullProgress(reference=pull.reference, logins=pull.logins, words=words.pop())
                await self._send(progress)
        took_s = self._clock.now().mono - started_at
        await self._send(_ended(pull, work, took_s))
        del self._flights[pull]
        if pull.logins:
            await self._prune_rights()

    def _report_failed(self, pull: Pull) -> None:
        """Whoever waits for the pull is answered all the same, unless that was done before."""
        work = self._flights.pop(pull, None)
        if work is not None:
            work.cancel()
            self._tasks.spawn(self._answer(pull), name=f"answer to the pull of {pull.reference}")

    async def _answer(self, pull: Pull) -> None:
        await self._send(_failed(pull, ErrorKind.INTERNAL, "its end cannot be told"))


def _ended(pull: Pull, work: asyncio.Task[str], took_s: float) -> PullEnded:
    """How a pull has ended. An unexpected error is an answer, too."""
    if work.cancelled():
        return _failed(pull, ErrorKind.PULL, "broken off", took_s)
    error = work.exception()
    if error is None:
        return PullEnded(reference=pull.reference, logins=pull.logins, image_id=work.result(), took_s=took_s)
    if isinstance(error, RuntimeCallError):
        return _failed(pull, error.kind, error.message, took_s)
    return _failed(pull, ErrorKind.INTERNAL, f"{type(error).__name__}: {error}", took_s)


def _failed(pull: Pull, kind: ErrorKind, message: str, took_s: float = 0.0) -> PullEnded:
    return PullEnded(reference=pull.reference, logins=pull.logins, error=kind, message=message, took_s=took_s)
