"""Making and starting one container of any kind: image, restart count, create, start, postStart hook.

Mirrors startContainer (pkg/kubelet/kuberuntime/kuberuntime_container.go). A failure becomes the container's result
and its event, and stops no other container.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.hashing import hash_in
from ipc.kubecontainer.pod_containers import find_container
from ipc.messages import event_reasons
from ipc.messages.pod_worker import SyncAction
from ipc.messages.sync_error import SyncError
from ipc.text.redaction import known_by, redacted
from workers.compute.types import ContainerStart
from workers.images.manager import ImageError
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.labels import read_container
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError
from workers.kuberuntime.container_config import generate_container_config
from workers.kuberuntime.container_images import ensure_image, ensure_images
from workers.kuberuntime.remove import remove_id
from workers.lifecycle.post_start import PostStartHookFailed, run_post_start
from workers.logs import layout, start_error
from workers.specgen.spec import ContainerConfig, container_spec
from workers.sync.context import SyncRun


class _Failed(Exception):
    """This container does not start now."""

    def __init__(self, reason: SyncError, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


async def start_container(run: SyncRun, pod: Pod, sandbox_id: str, start: ContainerStart) -> bool:
    """Record how it went; True when the container was started and its hook, if it has one, has succeeded.

    Raises SyncEnded when there is no going on for the other containers either.
    """
    found = find_container(pod.spec, start.name)
    assert found is not None, f"no container {start.name} in the pod's spec"
    container = found.container
    try:
        if not start.created_id:
            await ensure_images(run, pod, container)
            start = msgspec.structs.replace(start, attempt=await _attempt(run, container, start))
            start = await _create(run, pod, container, start, sandbox_id)
        id = await _start(run, pod, container, start, sandbox_id)
        await _post_start(run, pod, container, id)
    except ImageError as error:
        run.failed(SyncAction.START_CONTAINER, container.name, error.reason, error.message, error.retry_at)
        return False
    except _Failed as failed:
        run.failed(SyncAction.START_CONTAINER, container.name, failed.reason, failed.message)
        return False
    run.succeeded(SyncAction.START_CONTAINER, container.name)
    run.did(f"started {container.name} ({start.attempt})")
    return True


async def _attempt(run: SyncRun, container: Container, start: ContainerStart) -> int:
    """Which attempt it is, its log directory made ready. The newest container may be gone and an older one left: then
    the logs tell more. Raises _Failed."""
    try:
        attempt = max(start.attempt, layout.read_restart_count(run.logs, container.name))
        layout.ensure_directory(layout.log_file(run.logs, container.name, attempt))
        kept = layout.kept_attempts(run.context.gc.max_per_pod_container)
        there = {other.attempt for other in run.view.containers if other.name == container.name}
        layout.prune(run.logs, container.name, attempt, kept, there)
    except OSError as error:
        raise await _failed(run, container, SyncError.CREATE_CONTAINER_CONFIG, f"log directory: {error}") from error
    return attempt


async def _create(
    run: SyncRun, pod: Pod, container: Container, start: ContainerStart, sandbox_id: str
) -> ContainerStart:
    """A container that only has to be started. Raises _Failed, ImageError, SyncEnded."""
    run.step(f"creating {container.name}")
    try:
        place = await generate_container_config(run, pod, container, start, sandbox_id)
        spec = container_spec(pod, container, place)
    except ConfigError as error:
        raise await _failed(run, container, SyncError.CREATE_CONTAINER_CONFIG, error.message) from error
    try:
        id = await _create_or_adopt(run, pod, container, place, spec)
    except RuntimeCallError as error:
        raise await _failed(run, container, SyncError.CREATE_CONTAINER, error.message) from error
    await run.event(event_reasons.CREATED_CONTAINER, "Container created", container.name)
    return msgspec.structs.replace(start, created_id=id)


async def _create_or_adopt(
    run: SyncRun, pod: Pod, container: Container, place: ContainerConfig, spec: dict[str, Any]
) -> str:
    """Raises RuntimeCallError, ImageError, SyncEnded."""
    try:
        return await run.act(run.runtime.create_container, spec)
    except RuntimeCallError as error:
        if error.kind is ErrorKind.IMAGE_UNKNOWN:
            run.context.images.forget(container.image)  # removed since somebody looked
            await ensure_image(run, pod, container)
            return await run.act(run.runtime.create_container, spec)
        if error.kind is not ErrorKind.NAME_IN_USE:
            raise
        # An earlier create, given up as lost, happened after all, or half of it.
        found = await run.find(run.runtime.inspect_container, spec["name"])
        if found is not None and _is_the_same(found, pod, container, place):
            return found.id
        if found is not None:
            raise
    # A layer that belongs to no container keeps the name.
    await remove_id(run, run.runtime.remove_container, spec["name"])
    return await run.act(run.runtime.create_container, spec)


def _is_the_same(found: InspectedContainer, pod: Pod, container: Container, place: ContainerConfig) -> bool:
    own = read_container(found.labels)
    is_ours = place.ownership.owns(found) and not found.is_infra
    is_same = (own.pod_uid, own.hash) == (pod.metadata.uid, hash_in(pod.spec, container))
    return is_ours and is_same and found.pod_id == place.sandbox_id and not found.finished_at


async def _start(run: SyncRun, pod: Pod, container: Container, start: ContainerStart, sandbox_id: str) -> str:
    """The id of the container that runs now. Raises _Failed, ImageError, SyncEnded."""
    run.step(f"starting {container.name}")
    id = start.created_id
    try:
        await run.act(run.runtime.start_container, id)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.LEFTOVER:
            raise await _start_failed(run, container, start.attempt, error) from error
        id = await _start_anew(run, pod, container, start, sandbox_id)
    await run.event(event_reasons.STARTED_CONTAINER, "Container started", container.name)
    return id


async def _start_anew(run: SyncRun, pod: Pod, container: Container, start: ContainerStart, sandbox_id: str) -> str:
    """Podman died while it started the container, and cannot repeat that: no crash, so the same attempt is made again.

    Once: what looks like that a second time has another cause. Raises _Failed, ImageError, SyncEnded.
    """
    try:
        await remove_id(run, run.runtime.remove_container, start.created_id)
    except RuntimeCallError as error:
        raise await _failed(run, container, SyncError.RUN_CONTAINER, error.message) from error
    anew = await _create(run, pod, container, start, sandbox_id)
    try:
        await run.act(run.runtime.start_container, anew.created_id)
    except RuntimeCallError as error:
        raise await _start_failed(run, container, start.attempt, error) from error
    return anew.created_id


async def _post_start(run: SyncRun, pod: Pod, container: Container, id: str) -> None:
    """Raises _Failed, SyncEnded. Its event was sent with the hook's failure, and has none of its words."""
    try:
        await run_post_start(run, pod, container, id)
    except PostStartHookFailed as failed:
        raise _Failed(SyncError.POST_START_HOOK, failed.message) from failed


async def _start_failed(run: SyncRun, container: Container, attempt: int, error: RuntimeCallError) -> _Failed:
    """To be raised; the attempt counts as one that has ended."""
    if error.kind is not ErrorKind.NOT_FOUND:
        message = redacted(error.message, known_by(run.request.objects.secrets.values()))
        start_error.write(layout.log_file(run.logs, container.name, attempt), message)
    return await _failed(run, container, SyncError.RUN_CONTAINER, error.message)


async def _failed(run: SyncRun, container: Container, reason: SyncError, message: str) -> _Failed:
    """To be raised, once it has been told. What is told loses the values of Secrets in the master."""
    await run.event(event_reasons.FAILED_CONTAINER, f"Error: {message}", container.name)
    return _Failed(reason, message)
