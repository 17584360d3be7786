"""Removes dead containers and sandboxes. A failure is recorded and does not keep others from being removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.container_gc import newest_ids
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxStatus
from ipc.link.messages.pod_worker import SyncAction
from ipc.link.messages.sync_error import SyncError
from workers.kubecontainer.naming import infra_name_of
from workers.kubecontainer.runtime import RuntimeCallError
from workers.sync.run import SyncRun

REMOVE_TRIES: Final = 2
"""Podman 4.3 fails to remove a container whose process it has lost, and succeeds the second time."""


async def remove_id(run: SyncRun, remove: Callable[[str], Awaitable[None]], id: str) -> None:
    """Remove by id. Raises RuntimeCallError."""
    await remove_named(run, remove, id)
    run.record.removed(id)


async def remove_named(run: SyncRun, remove: Callable[[str], Awaitable[None]], reference: str) -> None:
    """Remove by id or by name, which another may have soon, with REMOVE_TRIES tries. Raises RuntimeCallError."""
    for remaining in reversed(range(REMOVE_TRIES)):
        try:
            return await run.act(remove, reference)
        except RuntimeCallError:
            if not remaining:
                raise
    return None


async def remove_container(run: SyncRun, container: RuntimeContainerStatus) -> bool:
    """Remove a container and record it; False when that failed."""
    description = f"{container.name} ({container.attempt})"
    what = _Removal(action=SyncAction.REMOVE_CONTAINER, target=container.name, description=description)
    return await _remove(run, what, remove_id(run, run.runtime.remove_container, container.id))


async def remove_dead_containers(run: SyncRun, status: RuntimePodStatus, ids: Collection[str]) -> None:
    """Remove those containers, of which the node has too many, as far as they are still dead and have a newer one of
    their name. What fails is asked for again."""
    spared = newest_ids(status.containers)
    for container in status.containers:
        asked_for = container.id in ids and container.id not in spared
        if asked_for and container.state is ContainerState.EXITED:
            await remove_container(run, container)


async def remove_sandbox(run: SyncRun, sandbox: SandboxStatus) -> bool:
    """Remove a sandbox with everything in it and record it; False when that failed."""
    description = f"sandbox {sandbox.attempt}"
    what = _Removal(action=SyncAction.REMOVE_SANDBOX, target=run.pod.name, description=description)
    if sandbox.infra_id:
        return await _remove(run, what, remove_id(run, run.runtime.remove_pod, sandbox.id))
    return await _remove(run, what, remove_half_made(run, sandbox.name, sandbox.id))


async def remove_half_made(run: SyncRun, name: str, id: str = "") -> None:
    """Remove a sandbox whose creation was interrupted: the pod, if there is one, and the layer of an infra container
    that Podman does not know, which would keep the name for ever. Raises RuntimeCallError."""
    if id:
        await remove_id(run, run.runtime.remove_pod, id)
    await remove_named(run, run.runtime.remove_container, infra_name_of(name))


class _Removal(msgspec.Struct, frozen=True, kw_only=True):
    """Action, target and description of a removal in the sync's record."""

    action: SyncAction
    target: str
    description: str


async def _remove(run: SyncRun, what: _Removal, removal: Awaitable[None]) -> bool:
    run.step(f"removing {what.description}")
    try:
        await removal
    except RuntimeCallError as error:
        run.record.failed(what.action, what.target, SyncError.REMOVE, error.message)
        return False
    run.record.succeeded(what.action, what.target)
    run.record.did(f"removed {what.description}")
    return True
