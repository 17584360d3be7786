"""Collects image garbage when the master asks for it: looks, decides by `workers.images.garbage`, removes.

Mirrors GarbageCollect and DeleteUnusedImages (pkg/kubelet/images/image_gc_manager.go). Different on purpose: while the
file system is not full, Podman is not asked; what our own containers use is known, and the rest is looked at when
something has to go. What a removal frees is what no other image has, so that shared layers are not counted as freed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Never

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageGcScope, ImageReport, Stays
from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.node_worker import MAX_REPORTED_IMAGES, CollectImages, ImagesCollected
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.images.garbage import (
    Candidate,
    Disk,
    ImageRecord,
    Removal,
    bytes_to_free,
    free_old,
    free_space,
    in_eviction_order,
    is_old,
    stays,
    stored_name,
)
from workers.images.image_records import ImageRecords
from workers.images.pull_records import PullRecords
from workers.kubecontainer.image_service import ImageService, ImageUsage, ImageUser, ListedImage
from workers.kubecontainer.runtime import InspectedContainer, RuntimeCallError

MAX_WAITING: Final = 16
"""Most requests that wait for the one under way."""
MAX_NAMES: Final = 5
"""Names and users of one image that are reported."""
MAX_REPORTED_FAILURES: Final = 5
"""Most removals that have failed of which an error tells."""
ID_CHARS: Final = 64
MIN_ID_CHARS: Final = 3
"""Shortest begin of an id that Podman takes for it."""
_HEX: Final = frozenset("0123456789abcdef")
_GIB: Final = 1 << 30
Send = Callable[[ImagesCollected | EventReport], Awaitable[None]]

log = logging.getLogger(__name__)


class NodeView(msgspec.Struct, frozen=True):
    """Knowledge of the node worker that costs no call of Podman."""

    containers: Callable[[], Iterable[InspectedContainer]]
    """Containers of this agent."""
    pulling: Callable[[], frozenset[str]]
    """Names of the images that are pulled now."""

    of_another_store: Callable[[], Iterable[ImageUser]] = tuple
    """Containers that Podman's service does not show. It blocks, and raises OSError where they are not
    known."""

    def used(self) -> frozenset[str]:
        """Ids of the images of these containers."""
        return frozenset(container.image_id for container in self.containers())

    def layer(self) -> str:
        """The layer of one of them, which shows where images are stored; empty when none has one."""
        return next((container.layer for container in self.containers() if container.layer), "")


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """One image, and what is to be said of it."""

    image: ListedImage
    record: ImageRecord
    users: tuple[str, ...]
    stays: Stays | None

    @property
    def candidate(self) -> Candidate:
        return Candidate(
            id=self.image.id,
            names=self.image.names,
            size_bytes=self.image.size_bytes,
            first_detected=self.record.first_detected,
            last_used=self.record.last_used,
        )

    def report(self, **more: object) -> ImageReport:
        known = ImageReport(
            id=self.image.id,
            names=(self.image.names or self.image.digests)[:MAX_NAMES],
            size_bytes=self.image.size_bytes,
            first_detected=self.record.first_detected,
            last_used=self.record.last_used,
            users=self.users[:MAX_NAMES],
            stays=self.stays or "",
        )
        return msgspec.structs.replace(known, **more)


class _GcError(Exception):
    """A collection that has failed, and what event that is."""

    def __init__(self, message: str, reason: EventReason | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class ImageCollector:
    """Collects once at a time, in the order of the requests; each is answered by one ImagesCollected."""

    def __init__(
        self,
        service: ImageService,
        clock: Clock,
        records: ImageRecords,
        pull_records: PullRecords,
        view: NodeView,
        node_name: str,
        send: Send,
    ) -> None:
        self._store = _Store(service, clock, records, pull_records, view)
        self._node_name = node_name
        self._send = send
        self._requests: asyncio.Queue[CollectImages] = asyncio.Queue(MAX_WAITING)

    async def ask(self, request: CollectImages) -> None:
        """Take a request; one too many is answered at once."""
        try:
            self._requests.put_nowait(request)
        except asyncio.QueueFull:
            await self._send(ImagesCollected(number=request.number, error=f"{MAX_WAITING} collections wait already"))

    async def collect(self) -> Never:
        """Answer requests for a collection of images, for ever."""
        while True:
            request = await self._requests.get()
            collection = _Collection(self._store, request)
            error = await self._error_of(collection)
            await self._send(collection.answer(error))

    async def _error_of(self, collection: _Collection) -> str:
        """Carry a collection out; why it has failed."""
        try:
            await collection.run()
        except _GcError as error:
            if error.reason is not None:
                await self._send(node_event(self._node_name, error.reason, str(error)))
            return str(error)
        except (RuntimeCallError, OSError) as error:
            return str(error)
        except Exception as error:
            note_failure("a collection of images", error)
            return f"unexpected {type(error).__name__}"
        return ""


class _Store:
    """Podman's images, with what this agent remembers of them."""

    def __init__(
        self, service: ImageService, clock: Clock, records: ImageRecords, pull_records: PullRecords, view: NodeView
    ) -> None:
        self._service = service
        self._clock = clock
        self._records = records
        self._pull_records = pull_records
        self._view = view

    @property
    def began_at(self) -> float:
        return self._records.began_at

    def now(self) -> float:
        """Wall seconds."""
        return self._clock.now().wall

    async def usage(self) -> ImageUsage | None:
        """Use of the file system, and by images."""
        return await self._service.image_usage(self._view.layer())

    def is_concerned(self, policy: ImageGcPolicy) -> bool:
        """Whether there is anything of this agent where images are: else nobody has to find out where that is."""
        return policy.scope is ImageGcScope.ALL or bool(self._view.layer()) or self._records.has_pulled

    def note_uses(self, ids: Iterable[str], listed_at: float) -> None:
        """Note which of these images, and no others, our own containers use."""
        self._records.detected(ids, self._view.used(), listed_at)
        self._pull_records.prune(self._records.all, listed_at)

    def has_old(self, policy: ImageGcPolicy) -> bool:
        """Whether an image may have been unused for longer than the maximum age."""
        used, now, all_images = self._view.used(), self.now(), policy.scope is ImageGcScope.ALL
        return bool(policy.max_age_s) and any(
            is_old(record, policy.max_age_s, now)
            for id, record in self._records.all.items()
            if id not in used and (all_images or record.pulled)
        )

    async def look(self, request: CollectImages) -> list[_Found]:
        """Every image, and who uses it."""
        now = self.now()
        images = await self._service.list_images()
        hidden = await asyncio.to_thread(self._view.of_another_store)
        containers = (*await self._service.list_image_users(), *hidden)
        self._records.find_pulled(images, self._view.pulling())
        users = _users(images, containers, request.wanted)
        used = users.keys() | self._view.used()
        self._records.detected((image.id for image in images), used, now)
        self._pull_records.prune({image.id for image in images}, now)
        found = []
        for image in images:
            record = self._records.of(image.id)
            why = stays(image, record, request.policy, now, in_use=image.id in used)
            found.append(_Found(image=image, record=record, users=users.get(image.id, ()), stays=why))
        return found

    async def remove(self, image: ListedImage) -> int:
        """Remove the image with its records: the bytes that this has freed. Raises RuntimeCallError."""
        usage = await self.usage()
        await self._service.remove_image(image)
        self._records.removed(image.id)
        self._pull_records.remove(image.id)
        known = usage.exclusive if usage is not None else None
        return (known or {}).get(image.id, image.size_bytes)


class _Collection:
    """One collection, with what it has done so far."""

    def __init__(self, store: _Store, request: CollectImages) -> None:
        self._store = store
        self._request = request
        self._usage: ImageUsage | None = None
        self._reports: list[ImageReport] = []
        self._failures: list[str] = []
        self._freed = 0
        self._began_at = 0.0
        """Wall seconds."""

    async def run(self) -> None:
        """Raises _GcError, RuntimeCallError, OSError; what was done until then is in the answer."""
        self._began_at = self._store.now()
        if not (self._request.report or self._request.all_unused or self._store.is_concerned(self._request.policy)):
            return
        self._usage = await self._store.usage()
        if self._request.report:
            self._reports = [found.report() for found in await self._store.look(self._request)]
        elif self._request.all_unused:
            await self._free(_garbage(await self._store.look(self._request)), math.inf)
        else:
            await self._collect(self._request.policy)

    def answer(self, error: str) -> ImagesCollected:
        usage = self._usage
        return ImagesCollected(
            number=self._request.number,
            freed_bytes=self._freed,
            images=tuple(self._reports[:MAX_REPORTED_IMAGES]),
            error=error,
            capacity_bytes=usage.capacity if usage is not None else 0,
            available_bytes=usage.available if usage is not None else 0,
        )

    async def _collect(self, policy: ImageGcPolicy) -> None:
        """GarbageCollect."""
        if not _wanted_bytes(self._usage, policy) and not self._store.has_old(policy):
            if self._usage is not None and self._usage.exclusive is not None:
                self._store.note_uses(self._usage.exclusive, self._began_at)
            return
        images = _garbage(await self._store.look(self._request))
        old = [image for image in images if image.stays is None]
        await self._carry_out(
            old, free_old(_ordered(old), policy.max_age_s, self._store.began_at, self._store.now()), _AGE
        )
        self._raise_failures("wanted to free old images, encountered errors in image deletion")
        self._usage = await self._store.usage()
        wanted = _wanted_bytes(self._usage, policy)
        gone = {report.id for report in self._reports if report.removed}
        if wanted:
            freed = await self._free([image for image in images if image.image.id not in gone], wanted)
            if freed < wanted:
                raise _GcError(_too_little(self._usage, freed), event_reasons.FREE_DISK_SPACE_FAILED)

    async def _free(self, images: Sequence[_Found], wanted: float) -> int:
        """Free so many bytes. Raises _GcError when an image could not be removed."""
        min_age_s = self._request.policy.min_age_s
        freed = await self._carry_out(
            images, free_space(_ordered(images), wanted, min_age_s, self._store.now()), _SPACE
        )
        goal = "all" if wanted == math.inf else f"{wanted:.0f} bytes"
        self._raise_failures(f"wanted to free {goal}, but freed {freed} bytes space with errors in image deletion")
        return freed

    def _raise_failures(self, why: str) -> None:
        """Raises _GcError when an image could not be removed."""
        if self._failures:
            reported = "; ".join(self._failures[:MAX_REPORTED_FAILURES])
            raise _GcError(f"{why}: [{reported}]")

    async def _carry_out(self, images: Iterable[_Found], work: Removal, reason: str) -> int:
        """Remove what is decided: the bytes freed."""
        known = {found.image.id: found for found in images}
        try:
            candidate = next(work)
            while True:
                candidate = work.send(await self._remove(known[candidate.id], reason))
        except StopIteration as end:
            freed: int = end.value
            return freed

    async def _remove(self, found: _Found, reason: str) -> int:
        """The bytes freed; 0 for an image that cannot be removed."""
        name = next(iter(found.image.names), found.image.id)
        try:
            freed = await self._store.remove(found.image)
        except (RuntimeCallError, OSError) as error:
            log.warning("cannot remove image %s: %s", name, error)
            self._failures.append(str(error))
            self._reports.append(found.report(error=str(error)))
            return 0
        log.info("removed image %s (%s), unused: %d bytes freed", name, found.image.id, freed)
        METERS.counter(metrics.IMAGES_COLLECTED, reason).inc()
        self._reports.append(found.report(removed=True))
        self._freed += freed
        return freed


_AGE: Final = "age"
_SPACE: Final = "space"
"""Values of the label ``reason`` (ImageGarbageCollectedTotalReasonAge and …Space)."""


def _wanted_bytes(usage: ImageUsage | None, policy: ImageGcPolicy) -> int:
    """How much has to go. Raises _GcError when that cannot be known."""
    if usage is None:
        raise _GcError("failed to get image stats: it is not known where Podman keeps images")
    if usage.capacity == 0:
        raise _GcError("invalid capacity 0 on image filesystem", event_reasons.INVALID_DISK_CAPACITY)
    return bytes_to_free(Disk(usage.capacity, usage.available), policy)


def _too_little(usage: ImageUsage | None, freed: int) -> str:
    assert usage is not None, "it was looked at"
    disk = Disk(usage.capacity, usage.available)
    return (
        f"Insufficient free disk space on the node's image filesystem ({disk.used_percent}% of "
        f"{disk.capacity / _GIB:.1f} GiB used). Failed to free sufficient space by deleting unused images "
        f"(freed {freed} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or "
        "other data."
    )


def _garbage(found: Iterable[_Found]) -> list[_Found]:
    """Images that may go now, or when they are older."""
    return [image for image in found if image.stays in (None, Stays.YOUNG)]


def _ordered(found: Iterable[_Found]) -> list[Candidate]:
    return in_eviction_order(image.candidate for image in found)


def _users(
    images: Iterable[ListedImage], containers: Iterable[ImageUser], wanted: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Image id -> names of its users: containers, and pods that want it. An image that users name by what is no
    reference is named by its id."""
    ids = {name: image.id for image in images for name in (image.id, *image.names, *image.digests)}
    uses = [*((image, user.name) for user in containers for image in user.images), *wanted.items()]
    found: dict[str, dict[str, None]] = {}
    for image, user in uses:
        id = ids.get(image) or ids.get(_complete(image)) or _by_begin(image, ids)
        found.setdefault(id, {})[user] = None
    return {id: tuple(users) for id, users in found.items()}


def _by_begin(text: str, ids: Mapping[str, str]) -> str:
    """The image whose id begins so; the text itself without one. Of a whole id there is nothing more to be found."""
    is_short_id = MIN_ID_CHARS <= len(text) < ID_CHARS and _HEX.issuperset(text)
    return next((id for id in ids.values() if id.startswith(text)), text) if is_short_id else text


def _complete(reference: str) -> str:
    try:
        return stored_name(reference)
    except ValueError:
        return reference
