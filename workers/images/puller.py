"""Runs the pulls that the master starts. None of them delays another, or anything else of the node worker."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.host.clock import Clock
from ipc.host.log.entry import line_about
from ipc.k8s.podobjects.registry_login import Pull, PullAccount, PullOwner, RegistryLogin
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.base import PullEnded, PullProgress
from workers.images.image_records import ImageRecords
from workers.images.provider_answers import NodeLogin
from workers.images.pull_records import PullRecords
from workers.kubecontainer.image_reference import ImageReference, parse_image_reference
from workers.kubecontainer.image_service import ImageService
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

PROGRESS_PERIOD_S: Final = 5.0
"""Shortest time between two progress reports of a pull, in seconds."""
PRUNED_PER_PULL: Final = 8
"""Records whose images are inspected after each pull with a login, so that those of removed images do not pile up: the
records that were checked the longest time ago."""
MAX_PULLS: Final = 100
"""Pulls under way. Each has a connection and a thread of its own; how many there are is the master's decision."""

Send = Callable[[PullProgress | PullEnded], Awaitable[None]]
FindNodeLogins = Callable[[ImageReference, PullAccount | None], Awaitable[tuple[NodeLogin, ...]]]
"""The node's own logins for an image, and for a pod of that account (`workers.images.provider_logins`)."""

_Try = tuple[RegistryLogin | None, PullOwner | None]
"""A login, and whose the image will be; None: all pods'."""

log = logging.getLogger(__name__)


async def no_node_logins(image: ImageReference, account: PullAccount | None) -> tuple[NodeLogin, ...]:
    """Logins of a node without credential providers: none."""
    return ()


class ImagePuller:
    """The pulls under way, one per image. Each one begun is answered by exactly one PullEnded."""

    def __init__(
        self,
        service: ImageService,
        clock: Clock,
        records: PullRecords,
        images: ImageRecords,
        send: Send,
        find_node_logins: FindNodeLogins = no_node_logins,
    ) -> None:
        self._service = service
        self._find_node_logins = find_node_logins
        self._clock = clock
        self._records = records
        self._images = images
        self._send = send
        self._in_flight: dict[Pull, asyncio.Task[str]] = {}
        self._tasks = BackgroundTasks()

    async def start(self, pull: Pull) -> None:
        """Begin a pull. Its deadline is the runtime call's."""
        reference = pull.reference
        if pull in self._in_flight or len(self._in_flight) >= MAX_PULLS:
            log.error("protocol error: %s is to be pulled, and %d pulls are under way", reference, len(self._in_flight))
            await self._send(_failed(pull, ErrorKind.INTERNAL, "too many pulls"))
            return
        progress: deque[str] = deque(maxlen=1)
        work = self._tasks.spawn(
            self._pull(pull, progress.append), name=f"pull of {reference}", expected=(RuntimeCallError,)
        )
        self._in_flight[pull] = work
        self._tasks.spawn(
            self._report(pull, work, progress),
            name=f"report on the pull of {reference}",
            on_failure=lambda _: self._report_failed(pull),
        )

    def cancel(self, pull: Pull) -> None:
        """Cancel a pull that is under way."""
        work = self._in_flight.get(pull)
        if work is not None:
            work.cancel()

    @property
    def references(self) -> frozenset[str]:
        """Names of the images that are pulled now."""
        return frozenset(pull.reference for pull in self._in_flight)

    async def close(self) -> None:
        """Cancel all pulls, without reports."""
        await self._tasks.close()

    async def _pull(self, pull: Pull, on_progress: Callable[[str], None]) -> str:
        """The image's id. Raises RuntimeCallError."""
        await self._note_begin(pull.reference)
        id = ""
        try:
            id = await self._pull_by_any(pull, on_progress)
        finally:
            self._images.pull_ended(pull.reference, id)
        return id

    async def _note_begin(self, reference: str) -> None:
        """Note the pull, and the image that is there before: only so the owner of what it brings can be told."""
        try:
            present = await self._service.inspect_image(reference)
        except RuntimeCallError as error:
            log.debug("not known whether %s was there before: %s", reference, error)
        else:
            self._images.pull_begins(reference, present.id if present is not None else "")

    async def _pull_by_any(self, pull: Pull, on_progress: Callable[[str], None]) -> str:
        """With several logins each is tried until one is good (pullImage,
        pkg/kubelet/kuberuntime/kuberuntime_image.go): the pods' own first, then those of the node's providers, and
        without any what Podman knows of the agent's user."""
        providers = await self._find_node_logins(parse_image_reference(pull.reference), pull.account)
        tries: list[_Try] = [(login, login) for login in pull.logins]
        tries += [(found.login, found.owner) for found in providers]
        *others, last = tries or [(None, None)]
        for login, owner in others:
            try:
                return await self._pulled_by(pull.reference, on_progress, login, owner)
            except RuntimeCallError as error:
                if error.kind is not ErrorKind.PULL:
                    raise
        return await self._pulled_by(pull.reference, on_progress, *last)

    async def _pulled_by(
        self,
        reference: str,
        on_progress: Callable[[str], None],
        login: RegistryLogin | None,
        owner: PullOwner | None,
    ) -> str:
        """The image's id. Its record is written before the pull is reported: for those that have the login or the
        account, where it is theirs. Raises RuntimeCallError."""
        self._records.intend(reference, owner)
        try:
            id = await self._service.pull_image(reference, on_progress, login)
        except (RuntimeCallError, asyncio.CancelledError):
            self._records.withdraw(reference, owner)
            raise
        self._records.grant(reference, id, owner)
        return id

    async def _prune_records(self) -> None:
        for image_id, at in self._records.oldest(PRUNED_PER_PULL).items():
            try:
                if await self._service.inspect_image(image_id) is None:
                    self._records.forget(image_id, at)
                else:
                    self._records.seen(image_id)
            except (RuntimeCallError, OSError) as error:
                log.warning("cannot inspect the image of record %s: %s", image_id, error)
                return

    async def _report(self, pull: Pull, work: asyncio.Task[str], progress: deque[str]) -> None:
        started_at = self._clock.now().mono
        while not (await asyncio.wait({work}, timeout=PROGRESS_PERIOD_S))[0]:
            if progress:
                report = PullProgress(**pull.parts, words=progress.pop())
                await self._send(report)
        took_s = self._clock.now().mono - started_at
        ended = _ended(pull, work, took_s)
        _log(ended)
        await self._send(ended)
        del self._in_flight[pull]
        if pull.logins:
            await self._prune_records()

    def _report_failed(self, pull: Pull) -> None:
        """Answer the pull all the same, unless that was done before."""
        work = self._in_flight.pop(pull, None)
        if work is not None:
            work.cancel()
            self._tasks.spawn(self._answer(pull), name=f"answer to the pull of {pull.reference}")

    async def _answer(self, pull: Pull) -> None:
        await self._send(_failed(pull, ErrorKind.INTERNAL, "its end cannot be reported"))


def _log(ended: PullEnded) -> None:
    told = line_about(duration_s=ended.took_s)
    if ended.error:
        log.warning("image %s was not pulled: %s", ended.reference, ended.message, extra=told)
    else:
        log.info("image %s was pulled", ended.reference, extra=told)


def _ended(pull: Pull, work: asyncio.Task[str], took_s: float) -> PullEnded:
    """The report of a pull that has ended, also by an unexpected error."""
    if work.cancelled():
        return _failed(pull, ErrorKind.PULL, "broken off", took_s)
    error = work.exception()
    if error is None:
        return PullEnded(**pull.parts, image_id=work.result(), took_s=took_s)
    if isinstance(error, RuntimeCallError):
        return _failed(pull, error.kind, error.message, took_s)
    return _failed(pull, ErrorKind.INTERNAL, f"{type(error).__name__}: {error}", took_s)


def _failed(pull: Pull, kind: ErrorKind, message: str, took_s: float = 0.0) -> PullEnded:
    return PullEnded(**pull.parts, error=kind, message=message, took_s=took_s)
