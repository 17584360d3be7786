"""Image manager: ensures that a container's image is present, by pull policy and back-off. Pulls run in the node
worker.

Mirrors EnsureImageExists (pkg/kubelet/images/image_manager.go). Different on purpose: a ``localhost/`` image that is
there is used even when the policy is Always. It was built or imported on this host, no registry has it, and Always is
what an image named ``:latest`` gets by default; ``podman kube play`` does not pull it by default either.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.v1.container import PullPolicy
from ipc.k8s.podobjects.registry_login import Pull, PullAccount, PullOwner, RegistryLogin
from ipc.link.eventloop.tasks import BackgroundTasks, with_progress
from ipc.link.messages import event_reasons
from ipc.link.messages.base import PullEnded
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from ipc.link.shm.trace import TRACER
from workers.images.error_reasons import pull_fault
from workers.images.pull_backoff import PullBackoff
from workers.images.pull_records import PullRecords
from workers.kubecontainer.event_messages import duration_to_the_ms
from workers.kubecontainer.image_reference import ImageReference, image_reference_problem, parse_image_reference
from workers.kubecontainer.image_service import ImageInfo, ImageService, ImageStamp
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

SEEN_FOR_S: Final = 2.0
"""How long an inspected image counts as present, in seconds, where Podman's list of images cannot be looked at: pods
that start together share one inspect. An image that is removed in between fails the create, after which it is
inspected again."""
MAX_SEEN: Final = 256
"""Most images whose inspects are kept, the last ones."""

PROGRESS_EVENT_S: Final = 30.0
"""Time until the first progress event of a pull, in seconds; each next one comes after twice the time: seven in an
hour."""

StartPull = Callable[[str, Pull, Callable[[str], None]], Awaitable[PullEnded]]
"""Takes a pod's uid, what to pull, and a callback for its progress (`workers.images.pull_requests`)."""
FindLogins = Callable[[ImageReference], tuple[RegistryLogin, ...]]
"""The pod's own logins for an image (`workers.images.credentials`)."""
SendEvent = Callable[[EventReason, str], Awaitable[None]]
"""Takes an event's reason and message."""


class ImageError(Exception):
    """The image is not there."""

    def __init__(self, reason: SyncError, message: str, retry_at: float = 0.0) -> None:
        """``retry_at``: wall time before which trying again is useless; 0.0 when unknown."""
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.retry_at = retry_at


class _Seen(msgspec.Struct, frozen=True):
    info: ImageInfo
    at: float
    """Monotonic seconds."""
    stamp: ImageStamp | None
    """Stamp of all images before the inspect; None without one."""


class _Inspect(msgspec.Struct, frozen=True):
    """An inspect under way."""

    task: asyncio.Task[ImageInfo | None]
    stamp: ImageStamp | None
    """Stamp of all images when it began."""


class ImageManager:
    """Ensures the images of one worker's pods. Keeps inspects as long as no image has changed, or for SEEN_FOR_S; all
    who ask for one meanwhile share it."""

    def __init__(self, service: ImageService, clock: Clock, records: PullRecords, pull: StartPull) -> None:
        self._service = service
        self._clock = clock
        self._records = records
        self._pull_image = pull
        self._seen: dict[str, _Seen] = {}
        self._inspects: dict[str, _Inspect] = {}
        """By reference, the newest under way."""
        self._tasks = BackgroundTasks()

    async def ensure_image(
        self,
        backoff: PullBackoff,
        reference: str,
        policy: PullPolicy,
        send_event: SendEvent,
        find_logins: FindLogins = lambda image: (),
        account: PullAccount | None = None,
    ) -> ImageInfo:
        """The container's image, pulled if need be with the pod's own logins for it (EnsureImageExists). ``backoff`` is
        the pod's; ``account`` too, of a cluster's.

        Raises ImageError, and RuntimeCallError with TIMEOUT (of an inspect) or UNAVAILABLE.
        """
        image = await self._parse(reference, send_event)
        present = self._known(str(image)) or await self._inspect(reference, image, send_event)
        logins = find_logins(image)
        is_free = present is None or self._records.allows(str(image), present.id, _owners(logins, account))
        is_enough = present is not None and is_free and not should_pull(image, policy)
        if present is not None and is_enough:
            await _report_present(reference, policy, send_event)
            return present
        _count_request(present is not None, policy, is_pulled=policy != "Never")
        if policy == "Never":
            message = f'Container image "{reference}" {_NOT_PRESENT if is_free else _NOT_FREE}'
            await send_event(event_reasons.ERR_IMAGE_NEVER_PULL_POLICY, message)
            raise ImageError(SyncError.IMAGE_NEVER_PULL, message)
        await self._refuse_in_backoff(backoff, reference, send_event)
        return await self._pull(
            backoff, reference, Pull(reference=str(image), logins=logins, account=account), send_event
        )

    async def known_image(
        self,
        reference: str,
        policy: PullPolicy,
        send_event: SendEvent,
        find_logins: FindLogins,
        account: PullAccount | None = None,
    ) -> ImageInfo | None:
        """`ensure_image` without a wait, for an image that is known to be there and needs no pull. None for others."""
        try:
            image = parse_image_reference(reference)
        except ValueError:
            return None
        known = self._known(str(image))
        if known is None or should_pull(image, policy):
            return None
        if not self._records.allows(str(image), known.id, _owners(find_logins(image), account)):
            return None
        await _report_present(reference, policy, send_event)
        return known

    async def reuse_image(self, reference: str, policy: PullPolicy, held: str, send_event: SendEvent) -> bool:
        """Whether the image needs no inspect because a container of it exists; ``held`` is that container's image.
        Podman removes no image without its containers. An image that has lost its name fails the create, as a removed
        one."""
        try:
            image = parse_image_reference(reference)
        except ValueError:
            return False  # `ensure_image` reports that
        if str(image) != held or should_pull(image, policy):
            return False
        await _report_present(reference, policy, send_event)
        return True

    async def _parse(self, reference: str, send_event: SendEvent) -> ImageReference:
        try:
            return parse_image_reference(reference)
        except ValueError as error:
            message = image_reference_problem(reference, error)
            await send_event(event_reasons.FAILED_TO_INSPECT_IMAGE, message)
            raise ImageError(SyncError.INVALID_IMAGE_NAME, message) from error

    def certain(self, reference: str) -> ImageInfo | None:
        """The image by that name, if Podman's list of images says for certain that it is what was inspected. The very
        same object, asked for before and after an act, was the image in between, too. Looks at one file."""
        try:
            image = parse_image_reference(reference)
        except ValueError:
            return None
        seen = self._seen.get(str(image))
        # Podman resolves a name with a digest to another one.
        if seen is None or seen.stamp is None or image.digest or seen.stamp != self._service.image_stamp():
            return None
        return seen.info

    async def ascertain(self, reference: str) -> ImageInfo | None:
        """`certain`, after an inspect where Podman's list of images could not be looked at before, or is another one by
        now. It costs less than those of the containers whose image is not known for certain."""
        known = self.certain(reference)
        if known is not None or self._service.image_stamp() is None:
            return known
        try:
            image = parse_image_reference(reference)
            if not image.digest:
                await self._shared_inspect(str(image))
        except (ValueError, RuntimeCallError):
            return None
        return self.certain(reference)

    def forget(self, reference: str) -> None:
        """Drop the cached inspect of an image that turned out to be gone."""
        self._seen.pop(str(parse_image_reference(reference)), None)

    async def _inspect(self, reference: str, image: ImageReference, send_event: SendEvent) -> ImageInfo | None:
        try:
            return await self._shared_inspect(str(image))
        except RuntimeCallError as error:
            if error.kind in (ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE):
                raise
            message = f'Failed to inspect image "{reference}": {error.message}'
            await send_event(event_reasons.FAILED_TO_INSPECT_IMAGE, message)
            raise ImageError(SyncError.IMAGE_INSPECT, message) from error

    async def _shared_inspect(self, name: str) -> ImageInfo | None:
        """The inspect of that image that is under way, or one that begins now.

        Of one that began before somebody asked counts what is there, if no image has changed meanwhile; an absence, by
        which an image is pulled, may be no longer true. Raises RuntimeCallError.
        """
        older = self._inspects.get(name)
        if older is not None and older.stamp == self._service.image_stamp():
            found = await asyncio.shield(older.task)
            if found is not None:
                return found
        newest = self._inspects.get(name)
        if newest is None or newest is older:
            newest = self._begin_inspect(name)
        return await asyncio.shield(newest.task)

    def _begin_inspect(self, name: str) -> _Inspect:
        stamp = self._service.image_stamp()
        task = self._tasks.spawn(
            self._make_inspect(name, stamp), name=f"inspect of image {name}", expected=(RuntimeCallError,)
        )
        begun = self._inspects[name] = _Inspect(task, stamp)
        task.add_done_callback(lambda _: self._end_inspect(name, begun))
        return begun

    def _end_inspect(self, name: str, ended: _Inspect) -> None:
        if self._inspects.get(name) is ended:
            del self._inspects[name]

    async def _make_inspect(self, name: str, stamp: ImageStamp | None) -> ImageInfo | None:
        at = self._clock.now().mono
        info = await self._service.inspect_image(name)
        if info is not None:
            self._saw(name, info, at, stamp)
        return info

    def _known(self, reference: str) -> ImageInfo | None:
        """The image as it was inspected, if that is still true."""
        seen = self._seen.get(reference)
        return seen.info if seen is not None and self._holds(seen, self._service.image_stamp()) else None

    def _holds(self, seen: _Seen, stamp: ImageStamp | None) -> bool:
        if seen.stamp is not None:
            return seen.stamp == stamp
        return self._clock.now().mono - seen.at < SEEN_FOR_S

    def _saw(self, reference: str, info: ImageInfo, at: float, stamp: ImageStamp | None) -> None:
        """Keep an inspect that began at ``at``, with the stamp from before it; drop those that do not hold any more."""
        now = self._service.image_stamp(info.id)
        seen = _Seen(info, at, stamp if stamp == now else None)
        kept = [(name, of) for name, of in self._seen.items() if name != reference and self._holds(of, now)]
        self._seen = dict([*kept, (reference, seen)][-MAX_SEEN:])

    async def _refuse_in_backoff(self, backoff: PullBackoff, reference: str, send_event: SendEvent) -> None:
        waits = backoff.waits_for(reference, self._clock.now().wall)
        if waits is None:
            return
        failure, retry_at = waits
        message = f'Back-off pulling image "{reference}"'
        await send_event(event_reasons.BACK_OFF_PULL_IMAGE, message)
        why = f"{message}: {failure.reason}: {failure.message}"
        raise ImageError(SyncError.IMAGE_PULL_BACK_OFF, why, retry_at)

    async def _pull(self, backoff: PullBackoff, reference: str, pull: Pull, send_event: SendEvent) -> ImageInfo:
        await send_event(event_reasons.PULLING_IMAGE, f'Pulling image "{reference}"')
        asked_at = self._clock.now().mono
        with TRACER.span(f"pull: {reference}"):
            ended = await self._watch_pull(backoff.uid, reference, pull, send_event)
        if ended.error == ErrorKind.UNAVAILABLE:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, "pull image", ended.message)
        if ended.error:
            raise await self._failed(backoff, reference, ended.message, send_event)
        stamp = self._service.image_stamp()
        pulled = await self._inspect_pulled(backoff, reference, ended.image_id, send_event)
        backoff.succeeded(reference)
        now = self._clock.now().mono
        self._saw(pull.reference, pulled, now, stamp)
        METERS.histogram(metrics.IMAGE_PULL_DURATION, size_label(pulled.size_bytes)).observe(ended.took_s)
        took, waited = duration_to_the_ms(ended.took_s), duration_to_the_ms(now - asked_at)
        size = f"Image size: {pulled.size_bytes} bytes."
        done = f'Successfully pulled image "{reference}" in {took} ({waited} including waiting). {size}'
        await send_event(event_reasons.PULLED_IMAGE, done)
        return pulled

    async def _watch_pull(self, uid: str, reference: str, pull: Pull, send_event: SendEvent) -> PullEnded:
        """Wait for the end of a pull, with an event of its progress now and then."""
        progress: deque[str] = deque(maxlen=1)  # kept: Podman copies one blob for long

        async def report_progress() -> None:
            if progress:
                await send_event(event_reasons.PULLING_IMAGE, f'Pulling image "{reference}": {progress[0]}')

        pauses_s = (PROGRESS_EVENT_S * 2.0**number for number in itertools.count())
        return await with_progress(self._pull_image(uid, pull, progress.append), report_progress, pauses_s)

    async def _inspect_pulled(self, backoff: PullBackoff, reference: str, id: str, send_event: SendEvent) -> ImageInfo:
        try:
            pulled = await self._service.inspect_image(id)
        except RuntimeCallError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            raise await self._failed(backoff, reference, error.message, send_event) from error
        if pulled is None:
            raise await self._failed(backoff, reference, "it was removed right after it was pulled", send_event)
        return pulled

    async def _failed(self, backoff: PullBackoff, reference: str, message: str, send_event: SendEvent) -> ImageError:
        """Note a failed pull for the back-off, and send its event."""
        reason, words = pull_fault(reference, message)
        retry_at = backoff.failed(reference, reason, words, self._clock.now().wall)
        await send_event(event_reasons.FAILED_TO_PULL_IMAGE, f'Failed to pull image "{reference}": {message}')
        return ImageError(reason, words, retry_at)


_NOT_PRESENT: Final = "is not present with pull policy of Never"
_NOT_FREE: Final = "is present with pull policy of Never but does not have the proper credentials to access the image"


def _count_request(is_present: bool, policy: PullPolicy, *, is_pulled: bool) -> None:
    """pkg/kubelet/images/image_manager.go, EnsureImageExists."""
    labels = (str(is_present).lower(), policy.lower(), str(is_pulled).lower())
    METERS.counter(metrics.ENSURE_IMAGE_REQUESTS, *labels).inc()


def size_label(size_bytes: int) -> str:
    """Value of the label ``image_size_in_bytes`` (pkg/kubelet/metrics/metrics.go, GetImageSizeBucket)."""
    return next(words for least, words in reversed(metrics.IMAGE_SIZES) if size_bytes >= least)


async def _report_present(reference: str, policy: PullPolicy, send_event: SendEvent) -> None:
    _count_request(True, policy, is_pulled=False)
    there = f'Container image "{reference}" already present on machine and can be accessed by the pod'
    await send_event(event_reasons.PULLED_IMAGE, there)


def _owners(logins: tuple[RegistryLogin, ...], account: PullAccount | None) -> tuple[PullOwner, ...]:
    return logins if account is None else (*logins, account)


def should_pull(image: ImageReference, policy: PullPolicy) -> bool:
    """Whether an image is pulled although it is there (shouldPullImage, and the exception at the top)."""
    return policy == "Always" and not image.is_local()
