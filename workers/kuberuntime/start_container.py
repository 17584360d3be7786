"""Making and starting one container of any kind: image, restart count, create, start, postStart hook.

Mirrors startContainer (pkg/kubelet/kuberuntime/kuberuntime_container.go). A failure becomes the container's result
and its event, and stops no other container.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.kubecontainer.hashing import hash_in
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.k8s.podobjects.redaction import known_by, redacted
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import SyncAction
from ipc.link.messages.sync_error import SyncError
from workers.compute.types import ContainerStart
from workers.images.error_reasons import start_fault
from workers.images.manager import ImageError
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.image_service import ImageInfo
from workers.kubecontainer.labels import read_container
from workers.kubecontainer.look import Look
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError
from workers.kuberuntime.container_config import PodInputs, generate_container_config
from workers.kuberuntime.container_images import PodImages
from workers.kuberuntime.context import SyncContext
from workers.kuberuntime.post_start import PostStartHookFailed, run_post_start
from workers.kuberuntime.remove import remove_id, remove_named
from workers.logs import layout, start_error
from workers.specgen.spec import ContainerConfig, container_spec
from workers.sync.run import SyncRun


class _Failed(Exception):
    """This container does not start now."""

    def __init__(self, reason: SyncError, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class _Made(msgspec.Struct, frozen=True):
    """Spec and image of a container, for a look at it once it runs."""

    spec: JsonObject
    image: ImageInfo
    """For certain the image of that name before it was made."""


class ContainerStarter:
    """Starts containers of one pod, in one sync and one sandbox."""

    def __init__(self, run: SyncRun, context: SyncContext, inputs: PodInputs, images: PodImages) -> None:
        self._run = run
        self._node = context.node
        self._host = context.volumes
        self._handlers = context.handlers
        self._manager = context.images
        self._inputs = inputs
        self._pod = inputs.of.pod
        self._images = images
        self._made: dict[str, _Made] = {}
        """By id, of containers that were not started yet."""

    @property
    def _logs(self) -> Path:
        """The pod's log directory: most syncs start nothing."""
        return self._node.logs(self._run.pod)

    async def start(self, start: ContainerStart) -> bool:
        """Start one container and record how it went; True when it was started and its hook, if it has one, has
        succeeded.

        Raises SyncEnded when there is no going on for the other containers either.
        """
        found = find_container(self._pod.spec, start.name)
        assert found is not None, f"no container {start.name} in the pod's spec"
        container, record = found.container, self._run.record
        try:
            attempt = await self._make_and_start(container, start)
        except ImageError as error:
            record.failed(SyncAction.START_CONTAINER, container.name, error.reason, error.message, error.retry_at)
            return False
        except _Failed as failed:
            record.failed(SyncAction.START_CONTAINER, container.name, failed.reason, failed.message)
            return False
        record.succeeded(SyncAction.START_CONTAINER, container.name)
        record.did(f"started {container.name} ({attempt})")
        return True

    async def _make_and_start(self, container: Container, start: ContainerStart) -> int:
        """The attempt that was started. Raises _Failed, ImageError, SyncEnded."""
        image = None
        if not start.created_id:
            image = await self._images.ensure_all(container)
            start = msgspec.structs.replace(start, attempt=await self._attempt(container, start))
            start = await self._create(container, start, image)
        id = await self._start(container, start, image)
        self._look(container, id)
        await self._post_start(container, id)
        return start.attempt

    async def _attempt(self, container: Container, start: ContainerStart) -> int:
        """Number of the attempt, its log directory made ready. The newest container may be gone and an older one left:
        then the logs show a higher attempt. Raises _Failed."""
        kept = layout.kept_attempts(self._node.gc.max_per_pod_container)
        there = {other.attempt for other in self._inputs.of.status.of_name(container.name)}
        try:
            return await self._run.in_files(
                layout.SUBJECT, layout.begin_attempt, self._logs, container.name, start.attempt, kept, there
            )
        except OSError as error:
            raise await self._failed(container, SyncError.CREATE_CONTAINER_CONFIG, f"log directory: {error}") from error

    async def _create(self, container: Container, start: ContainerStart, image: ImageInfo | None) -> ContainerStart:
        """A container that only has to be started. Raises _Failed, ImageError, SyncEnded."""
        run = self._run
        run.step(f"creating {container.name}")
        try:
            await self._verify(container, image)
            config = await generate_container_config(run, self._node, self._host, self._inputs, container, start, image)
            config = msgspec.structs.replace(config, image_volumes=self._images.of_volumes(container))
            spec = container_spec(self._pod, container, config)
        except ConfigError as error:
            raise await self._failed(container, error.reason, error.message) from error
        try:
            id = await self._create_or_adopt(container, config, spec)
        except RuntimeCallError as error:
            raise await self._failed(container, SyncError.CREATE_CONTAINER, error.message) from error
        await run.event(event_reasons.CREATED_CONTAINER, "Container created", container.name)
        return msgspec.structs.replace(start, created_id=id)

    async def _verify(self, container: Container, image: ImageInfo | None) -> None:
        """Refuse an image that would direct the OCI runtime, past the pod's own security context. Raises
        ConfigError."""
        known = image or await self._manager.ascertain(container.image)
        if known is not None and known.directs_runtime:
            raise ConfigError(f'image "{container.image}" has annotations run.oci.*, which direct the OCI runtime')

    async def _create_or_adopt(self, container: Container, config: ContainerConfig, spec: JsonObject) -> str:
        """Raises RuntimeCallError, ImageError, SyncEnded."""
        run = self._run
        try:
            return await self._make(container, spec)
        except RuntimeCallError as error:
            if error.kind is ErrorKind.IMAGE_UNKNOWN:
                self._manager.forget(container.image)  # removed since it was seen
                await self._images.ensure_own(container)
                return await self._make(container, spec)
            if error.kind is not ErrorKind.NAME_IN_USE:
                raise
            # An earlier create, given up as lost, happened after all, or half of it.
            found = await run.find(run.runtime.inspect_container, spec["name"])
            if found is not None and self._is_the_same(found, container, config):
                return found.id
            if found is not None:
                raise
        # A layer that belongs to no container keeps the name.
        await remove_named(run, run.runtime.remove_container, spec["name"])
        return await self._make(container, spec)

    async def _make(self, container: Container, spec: JsonObject) -> str:
        """Raises RuntimeCallError, SyncEnded."""
        image, runtime = await self._manager.ascertain(container.image), self._run.runtime
        body = runtime.with_filter(spec, image) if image is not None else spec
        id = await self._run.act(runtime.create_container, body)
        if image is not None:
            self._made[id] = _Made(spec, image)
        return id

    def _look(self, container: Container, id: str) -> None:
        """See a container that this sync has made and started: then the node worker need not inspect it."""
        run, made = self._run, self._made.get(id)
        if made is None or self._manager.certain(container.image) is not made.image:
            return
        at = run.clock.now().mono
        found = run.runtime.look_at_container(id, made.spec, made.image)
        if found is not None:
            run.record.looked(id, Look(found, at))

    def _is_the_same(self, found: InspectedContainer, container: Container, config: ContainerConfig) -> bool:
        own = read_container(found.labels)
        is_ours = config.ownership.owns(found) and not found.is_infra
        is_same = (own.pod_uid, own.hash) == (self._pod.metadata.uid, hash_in(self._pod.spec, container))
        return is_ours and is_same and found.pod_id == config.sandbox_id and not found.finished_at

    async def _start(self, container: Container, start: ContainerStart, image: ImageInfo | None) -> str:
        """The id of the container that runs now. Raises _Failed, ImageError, SyncEnded."""
        run = self._run
        run.step(f"starting {container.name}")
        id = start.created_id
        await self._begins(container, start)
        try:
            await run.act(run.runtime.start_container, id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.LEFTOVER:
                raise await self._start_failed(container, start.attempt, error) from error
            id = await self._start_anew(container, start, image)
        await run.event(event_reasons.STARTED_CONTAINER, "Container started", container.name)
        return id

    async def _begins(self, container: Container, start: ContainerStart) -> None:
        """Raises SyncEnded."""
        now, spec = self._run.clock.now().wall, self._pod.spec
        await self._run.begins(
            RuntimeContainerStatus(
                id=start.created_id,
                name=container.name,
                attempt=start.attempt,
                state=ContainerState.RUNNING,
                sandbox_id=self._inputs.sandbox.id,
                hash=hash_in(spec, container),
                image=container.image,
                backoff_s=start.backoff_s,
                created_at=now,
                started_at=now,
            )
        )

    async def _start_anew(self, container: Container, start: ContainerStart, image: ImageInfo | None) -> str:
        """Podman died while it started the container, and cannot repeat that: no crash, so the same attempt is made
        again.

        Once: a second such error has another cause. Raises _Failed, ImageError, SyncEnded.
        """
        run = self._run
        try:
            await remove_id(run, run.runtime.remove_container, start.created_id)
        except RuntimeCallError as error:
            raise await self._failed(container, SyncError.RUN_CONTAINER, error.message) from error
        anew = await self._create(container, start, image)
        await self._begins(container, anew)
        try:
            await run.act(run.runtime.start_container, anew.created_id)
        except RuntimeCallError as error:
            raise await self._start_failed(container, start.attempt, error) from error
        return anew.created_id

    async def _post_start(self, container: Container, id: str) -> None:
        """Raises _Failed, SyncEnded. The event was sent with the hook's failure, without its output."""
        try:
            await run_post_start(self._run, self._handlers, self._pod, container, id)
        except PostStartHookFailed as failed:
            raise _Failed(SyncError.POST_START_HOOK, failed.message) from failed

    async def _start_failed(self, container: Container, attempt: int, error: RuntimeCallError) -> _Failed:
        """To be raised; the attempt counts as one that has ended."""
        if error.kind is not ErrorKind.NOT_FOUND:
            message = redacted(error.message, known_by(self._inputs.of.objects.secrets.values()))
            file = layout.log_file(self._logs, container.name, attempt)
            try:
                await self._run.in_files(layout.SUBJECT, start_error.write, file, message)
            except OSError as unwritten:
                words = f"{error.message}; this cannot be noted beside the log: {unwritten}"
                return await self._failed(container, start_fault(error.message), words)
        return await self._failed(container, start_fault(error.message), error.message)

    async def _failed(self, container: Container, reason: SyncError, message: str) -> _Failed:
        """To be raised, once its event was sent. The master takes the values of Secrets out of events."""
        await self._run.event(event_reasons.FAILED_CONTAINER, f"Error: {message}", container.name)
        return _Failed(reason, message)
