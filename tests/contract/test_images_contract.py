"""Images as pods ask for them, on the fake and on Podman."""

from __future__ import annotations

import pytest

from ipc.host.clock import SystemClock
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.sync_error import SyncError
from tests.contract.target import Target
from tests.fakes.pulls import LocalPulls
from workers.images.manager import ImageError, ImageManager
from workers.images.pull_backoff import PullBackoff
from workers.images.pull_records import PullRecords


async def ignore(reason: EventReason, message: str) -> None:
    """Nobody reads these events."""


def manager(target: Target) -> ImageManager:
    clock = SystemClock()
    return ImageManager(target.runtime, clock, PullRecords(""), LocalPulls(target.runtime, clock).pull)


async def test_a_local_image_is_used_as_it_is_whatever_the_policy(target: Target) -> None:
    images, backoff = manager(target), PullBackoff("u1")
    known = await target.runtime.inspect_image(target.image)
    assert known is not None
    assert await images.ensure_image(backoff, target.image, "Always", ignore) == known
    assert await images.ensure_image(backoff, target.image.removesuffix(":latest"), "IfNotPresent", ignore) == known
    assert await images.ensure_image(backoff, target.image, "Never", ignore) == known


async def test_an_absent_image_is_never_pulled_under_never(target: Target) -> None:
    images, backoff = manager(target), PullBackoff("u1")
    with pytest.raises(ImageError) as caught:
        await images.ensure_image(backoff, "localhost/no-such-image", "Never", ignore)
    assert caught.value.reason is SyncError.IMAGE_NEVER_PULL


async def test_a_pull_that_fails_backs_off(target: Target) -> None:
    images, backoff, reference = manager(target), PullBackoff("u1"), "127.0.0.1:1/nobody/listens:1"
    reasons = []
    for _ in range(2):
        with pytest.raises(ImageError) as caught:
            await images.ensure_image(backoff, reference, "IfNotPresent", ignore)
        reasons.append(caught.value.reason)
    assert reasons == [SyncError.REGISTRY_UNAVAILABLE, SyncError.IMAGE_PULL_BACK_OFF]
