"""Makes sure that a container's image is there: pull policy, one pull at a time per image, back-off after failures.

Mirrors EnsureImageExists (pkg/kubelet/images/image_manager.go). Different on purpose: a ``localhost/`` image that is
there is used even when the policy is Always. It was built or imported on this host, no registry has it, and Always is
what an image named ``:latest`` gets by default; ``podman kube play`` does not pull it by default either.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ipc.api.container import PullPolicy
from ipc.clock import Clock
from workers.image_reference import ImageReference, parse_image_reference
from workers.restart import BackoffEntry, BackoffLimits, has_expired, next_backoff_s
from workers.runtime import ErrorKind, ImageInfo, Runtime, RuntimeCallError

PULL_BACKOFF: Final = BackoffLimits(initial_s=10.0, max_s=300.0, expires_after_s=600.0)
"""pkg/kubelet/kubelet.go (imageBackOffPeriod, MaxImageBackOff); client-go forgets after twice the maximum."""

SEEN_FOR_S: Final = 2.0
"""How long an image that was seen counts as there, in seconds: pods that start together share one look. One that is
removed in between is missed by the create, which asks again."""

Tell = Callable[[str, str, str], Awaitable[None]]
"""Takes an event's type, reason and message."""


class ImageReason(enum.StrEnum):
    """Why a container waits for its image (pkg/kubelet/images/types.go)."""

    PULL_BACK_OFF = "ImagePullBackOff"
    INSPECT_ERROR = "ImageInspectError"
    PULL_ERROR = "ErrImagePull"
    NEVER_PULL = "ErrImageNeverPull"
    INVALID_NAME = "InvalidImageName"


class ImageError(Exception):
    """The image is not there."""

    def __init__(self, reason: ImageReason, message: str, retry_at: float = 0.0) -> None:
        """``retry_at``: wall time before which trying again is useless; 0.0 when unknown."""
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.retry_at = retry_at


class _Seen(msgspec.Struct, frozen=True):
    info: ImageInfo
    at: float
    """Monotonic seconds."""


class _Failure(msgspec.Struct, frozen=True):
    backoff: BackoffEntry
    message: str


class ImageManager:
    """The images of one worker's pods. Its back-off does not survive the worker: a pull too many is all that costs."""

    def __init__(self, runtime: Runtime, clock: Clock, limits: BackoffLimits = PULL_BACKOFF) -> None:
        self._runtime = runtime
        self._clock = clock
        self._limits = limits
        self._pulls: dict[str, asyncio.Task[str]] = {}
        self._failures: dict[tuple[str, str], _Failure] = {}
        self._seen: dict[str, _Seen] = {}

    async def ensure_image(self, uid: str, reference: str, policy: PullPolicy, tell: Tell) -> ImageInfo:
        """The image of a container of the pod ``uid``, pulled if need be.

        Raises ImageError, and RuntimeCallError with TIMEOUT (of an inspect) or UNAVAILABLE.
        """
        image = await self._parse(reference, tell)
        present = await self._inspect(reference, image, tell)
        if present is not None and not should_pull(image, policy):
            there = f'Container image "{reference}" already present on machine and can be accessed by the pod'
            await tell("Normal", "Pulled", there)
            return present
        if policy == "Never":
            message = f'Container image "{reference}" is not present with pull policy of Never'
            await tell("Warning", ImageReason.NEVER_PULL, message)
            raise ImageError(ImageReason.NEVER_PULL, message)
        await self._refuse_in_backoff(uid, reference, tell)
        return await self._pull(uid, reference, image, tell)

    async def _parse(self, reference: str, tell: Tell) -> ImageReference:
        try:
            return parse_image_reference(reference)
        except ValueError as error:
            message = f'Failed to apply default image tag "{reference}": couldn\'t parse image name: {error}'
            await tell("Warning", "InspectFailed", message)
            raise ImageError(ImageReason.INVALID_NAME, message) from error

    def forget(self, reference: str) -> None:
        """It turned out to be gone: the next `ensure_image` looks for itself."""
        self._seen.pop(str(parse_image_reference(reference)), None)

    async def _inspect(self, reference: str, image: ImageReference, tell: Tell) -> ImageInfo | None:
        now = self._clock.now().mono
        seen = self._seen.get(str(image))
        if seen is not None and now - seen.at < SEEN_FOR_S:
            return seen.info
        try:
            info = await self._runtime.inspect_image(str(image))
            if info is not None:
                self._seen[str(image)] = _Seen(info, now)
            return info
        except RuntimeCallError as error:
            if error.kind in (ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE):
                raise
            message = f'Failed to inspect image "{reference}": {error.message}'
            await tell("Warning", "InspectFailed", message)
            raise ImageError(ImageReason.INSPECT_ERROR, message) from error

    async def _refuse_in_backoff(self, uid: str, reference: str, tell: Tell) -> None:
        failure = self._failures.get((uid, reference))
        retry_at = _retry_at(failure.backoff, self._clock.now().wall, self._limits) if failure else 0.0
        if failure is None or not retry_at:
            return
        message = f'Back-off pulling image "{reference}"'
        await tell("Normal", "BackOff", message)
        why = f"{message}: {ImageReason.PULL_ERROR}: {failure.message}"
        raise ImageError(ImageReason.PULL_BACK_OFF, why, retry_at)

    async def _pull(self, uid: str, reference: str, image: ImageReference, tell: Tell) -> ImageInfo:
        await tell("Normal", "Pulling", f'Pulling image "{reference}"')
        started_at = self._clock.now().mono
        try:
            id = await self._shared_pull(str(image))
            pulled = await self._runtime.inspect_image(id)
        except RuntimeCallError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            raise await self._failed(uid, reference, error.message, tell) from error
        if pulled is None:
            raise await self._failed(uid, reference, "it was removed right after it was pulled", tell)
        self._failures.pop((uid, reference), None)
        took_s = self._clock.now().mono - started_at
        size = f". Image size: {pulled.size_bytes} bytes." if pulled.size_bytes else ""
        await tell("Normal", "Pulled", f'Successfully pulled image "{reference}" in {took_s:.3f}s{size}')
        return pulled

    async def _shared_pull(self, reference: str) -> str:
        """One pull for all that wait for it; it goes on when one of them is cancelled."""
        task = self._pulls.get(reference)
        if task is None:
            task = asyncio.create_task(self._runtime.pull_image(reference), name=f"pull {reference}")
            self._pulls[reference] = task
            task.add_done_callback(lambda done: self._end_pull(reference, done))
        return await asyncio.shield(task)

    def _end_pull(self, reference: str, task: asyncio.Task[str]) -> None:
        del self._pulls[reference]
        if not task.cancelled():
            task.exception()  # Retrieved, also when nobody waits any more.

    async def _failed(self, uid: str, reference: str, words: str, tell: Tell) -> ImageError:
        """Note the failure for the back-off and say so."""
        now = self._clock.now().wall
        self._forget_expired(now)
        known = self._failures.get((uid, reference))
        backoff_s = next_backoff_s(known.backoff if known else None, now, self._limits)
        self._failures[uid, reference] = _Failure(BackoffEntry(backoff_s=backoff_s, updated_at=now), words)
        await tell("Warning", "Failed", f'Failed to pull image "{reference}": {words}')
        return ImageError(ImageReason.PULL_ERROR, words, now + backoff_s)

    def _forget_expired(self, now_wall: float) -> None:
        for key, failure in tuple(self._failures.items()):
            if has_expired(failure.backoff, now_wall, self._limits):
                del self._failures[key]


def should_pull(image: ImageReference, policy: PullPolicy) -> bool:
    """Whether an image is pulled although it is there (shouldPullImage, and the exception at the top)."""
    return policy == "Always" and not image.is_local()


def _retry_at(entry: BackoffEntry, now_wall: float, limits: BackoffLimits) -> float:
    """Wall time at which the back-off ends; 0.0 when it has (client-go Backoff.IsInBackOffSinceUpdate)."""
    end = entry.updated_at + entry.backoff_s
    return end if now_wall < end and not has_expired(entry, now_wall, limits) else 0.0
