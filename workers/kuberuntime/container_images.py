"""The images that a container needs before it can be made: its own, and those that it sees as volumes.

Mirrors the beginning of startContainer (pkg/kubelet/kuberuntime/kuberuntime_container.go). Whether one has to be
pulled is decided by `workers.images.manager`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container, PullPolicy
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from workers.images.credentials import KeyedLogin, PullSecretError, logins_for, read_pull_secret
from workers.images.manager import FindLogins, ImageError, ImageManager
from workers.kubecontainer.image_reference import image_digest_reference
from workers.kubecontainer.image_service import ImageInfo
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun

MAY_NOT_SUCCEED: Final = "attempting to pull the image may not succeed."


class _Ahead(msgspec.Struct, frozen=True):
    """Images that are being looked for before it is their container's turn."""

    name: str
    """Name of the container."""
    task: asyncio.Task[ImageInfo | None]
    tasks: BackgroundTasks
    """Owner of that task."""


class PodImages:
    """Makes sure of the images of one pod's containers, in one sync."""

    def __init__(self, run: SyncRun, manager: ImageManager, of: PodSnapshot) -> None:
        self._run = run
        self._manager = manager
        self._of = of
        self._logins: tuple[KeyedLogin, ...] | None = None
        """Logins of the pod's imagePullSecrets; None until an image is looked for."""
        self._ahead: _Ahead | None = None
        self._held: list[tuple[EventReason, str, str]] | None = None
        """Events of that, until it is the container's turn; None for events that are sent at once."""
        self._ensured: dict[str, ImageInfo | None] = {}
        """By container: what was ensured before it was its turn."""
        self._volumes: dict[str, Mapping[str, str]] = {}

    @contextlib.asynccontextmanager
    async def ahead(self, container: Container) -> AsyncIterator[None]:
        """Look for that container's images from now on, beside the block; `ensure_all` goes on with it, and sends its
        events then. What the next sync will ask for again is given up when the block fails."""
        self._held = []
        tasks = BackgroundTasks()
        task = tasks.spawn(self._ensure_all(container), name=f"images of {container.name}", expected=(Exception,))
        try:
            yield
        except BaseException:
            if task.done():
                await self._send_held()
            await tasks.close()
            raise
        self._ahead = _Ahead(container.name, task, tasks)

    async def missing(self, names: Iterable[str]) -> Mapping[str, ImageError]:
        """Errors by the names of containers whose images are not there, after their events. `ensure_all` of the others
        asks no more. Raises SyncEnded."""
        found: dict[str, ImageError] = {}
        for name in names:
            of = find_container(self._of.pod.spec, name)
            assert of is not None, f"no container {name} in the pod's spec"
            try:
                self._ensured[name] = await self._ensure_all(of.container)
            except ImageError as error:
                found[name] = error
        return found

    async def ensure_all(self, container: Container) -> ImageInfo | None:
        """The container's own image, and those of the volumes that it sees (getImageVolumes).

        Returns the inspect of its own; None when a container of that image exists and none was needed. Raises
        ImageError, after its events, and SyncEnded.
        """
        if self._ahead is None:
            return await self._ensure_all(container)
        ahead, self._ahead = self._ahead, None
        assert ahead.name == container.name, "the first that starts is looked ahead for"
        try:
            await self._send_held()
            return await ahead.task
        finally:
            await ahead.tasks.close()

    async def _ensure_all(self, container: Container) -> ImageInfo | None:
        if container.name in self._ensured:
            return self._ensured[container.name]
        own = await self.ensure_own(container, self._image_of_predecessor(container))
        seen, found = {mount.name for mount in container.volume_mounts}, {}
        for volume in self._of.pod.spec.volumes:
            if volume.image is not None and volume.name in seen:
                wanted = volume.image
                info = await self._ensure(container, wanted.reference, wanted.pull_policy or "IfNotPresent")
                assert info is not None, "no container holds the image of a volume"
                found[volume.name] = image_digest_reference(wanted.reference, info.digest) or info.id
        self._volumes[container.name] = found
        return own

    def of_volumes(self, container: Container) -> Mapping[str, str]:
        """Images that the container sees as volumes, by the volume's name, as statuses name images: those that
        `ensure_all` has found, else those of the container that is made again."""
        newest = self._of.status.newest(container.name)
        return self._volumes.get(container.name, newest.image_volumes if newest is not None else {})

    async def ensure_own(self, container: Container, held: str = "") -> ImageInfo | None:
        """The container's own image alone. ``held``: the image of a container that is there. Result and errors as of
        `ensure_all`."""
        return await self._ensure(container, container.image, container.image_pull_policy or "IfNotPresent", held)

    def _image_of_predecessor(self, container: Container) -> str:
        """Empty when there is no predecessor."""
        newest = self._of.status.newest(container.name)
        return newest.image if newest is not None else ""

    async def _ensure(self, container: Container, image: str, policy: PullPolicy, held: str = "") -> ImageInfo | None:
        run = self._run

        async def send_event(reason: EventReason, message: str) -> None:
            await self._event(reason, message, container.name)

        run.step(f"image of {container.name}")
        if await self._manager.reuse_image(image, policy, held, send_event):
            return None
        find_logins = await self._login_finder()
        cluster = self._of.objects.cluster
        account = cluster.account if cluster is not None else None
        known = await self._manager.known_image(image, policy, send_event, find_logins, account)
        if known is not None:
            return known
        ensure, backoff = self._manager.ensure_image, run.record.pull_backoff
        try:
            return await run.unless_cancelled(ensure, backoff, image, policy, send_event, find_logins, account)
        except ImageError as error:
            await self._event(event_reasons.FAILED_CONTAINER, f"Error: {error.reason}", container.name)
            raise

    async def _login_finder(self) -> FindLogins:
        """Finds logins of the pod's imagePullSecrets, which are read once in a sync."""
        if self._logins is None:
            self._logins = await self._read_pull_secrets()
        logins = self._logins
        return lambda image: logins_for(image, logins)

    async def _read_pull_secrets(self) -> tuple[KeyedLogin, ...]:
        """Logins of the pod's imagePullSecrets. A missing or invalid one gets an event, and the pull goes on without it
        (getPullSecretsForPod, pkg/kubelet/kubelet_pods.go)."""
        known = self._of.objects.secrets
        names = [secret.name for secret in self._of.pod.spec.image_pull_secrets if secret.name]
        unusable = [f"{name}: there is no such Secret" for name in names if name not in known]
        logins: list[KeyedLogin] = []
        for secret in (known[name] for name in names if name in known):
            try:
                logins += read_pull_secret(secret)
            except PullSecretError as error:
                unusable.append(f"{secret.metadata.name}: {error}")
        if unusable:
            message = f"Unable to retrieve some image pull secrets ({', '.join(unusable)}); {MAY_NOT_SUCCEED}"
            await self._event(event_reasons.FAILED_TO_RETRIEVE_IMAGE_PULL_SECRET, message)
        return tuple(logins)

    async def _event(self, reason: EventReason, message: str, container: str = "") -> None:
        if self._held is not None:
            self._held.append((reason, message, container))
        else:
            await self._run.event(reason, message, container)

    async def _send_held(self) -> None:
        """In their order, before any later one."""
        while self._held:
            await self._run.event(*self._held.pop(0))
        self._held = None
